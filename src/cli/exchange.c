/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects, sends and receives, each until the deadline at most, and prints the outcome of a
 * command. The daemon may be of a different version: a missing member of a reply counts as empty,
 * and no assertion depends on a reply. */
#include "cli/exchange.h"

#include "base/diag.h"
#include "channel/fd_passing.h"
#include "os/descriptor.h"
#include "os/sockets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Time limit of a call for the next line; the call is repeated. */
#define NEXT_MS (24 * 3600 * 1000)

int64_t cli_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Limits the time of the next call; -1 with errno EAGAIN when the deadline has passed. */
static int limit_wait(int fd, int64_t deadline)
{
    int64_t ms = deadline - cli_now_ms();
    struct timeval limit = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

    if (ms <= 0) {
        errno = EAGAIN;
        return -1;
    }
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == -1)
        return -1;
    return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

int cli_connect(struct cli_exchange *exchange, const char *path, int64_t deadline)
{
    int fd = descriptor_socket(AF_UNIX, SOCK_STREAM, 0), error;

    *exchange = (struct cli_exchange) { .fd = -1, .passed = -1, .deadline = deadline };
    if (fd != -1 && limit_wait(fd, deadline) == 0 && os_socket_connect_path(fd, path) == 0)
        exchange->fd = fd;
    error = errno;
    if (fd != -1 && exchange->fd == -1)
        close(fd);
    errno = error;
    return exchange->fd != -1 ? 0 : -1;
}

int cli_send(struct cli_exchange *exchange, const char *request)
{
    size_t n = strlen(request);
    ssize_t sent;

    do
        sent = send(exchange->fd, request, n, MSG_NOSIGNAL); /* the socket has room for it */
    while (sent == -1 && errno == EINTR);
    return sent == (ssize_t)n || errno == EPIPE ? 0 : -1;
}

int cli_request(
    struct cli_exchange *exchange, const char *path, const char *command, int64_t deadline)
{
    char request[64];

    snprintf(request, sizeof(request), "{\"command\":\"%s\"}\n", command);
    return cli_connect(exchange, path, deadline) == 0 ? cli_send(exchange, request) : -1;
}

/* Receives bytes, and perhaps a descriptor. */
static ssize_t receive_piece(struct cli_exchange *exchange)
{
    int passed = -1;
    ssize_t n = fd_receive(
        exchange->fd, exchange->text + exchange->n, exchange->size - exchange->n, &passed, NULL);

    if (passed != -1) {
        descriptor_close(exchange->passed);
        exchange->passed = passed;
    }
    return n;
}

int cli_receive(struct cli_exchange *exchange)
{
    ssize_t n = 0;

    exchange->n -= exchange->line_n;
    if (exchange->line_n > 0)
        memmove(exchange->text, exchange->text + exchange->line_n, exchange->n);
    exchange->line_n = 0;
    for (;;) {
        const char *end = exchange->n > 0 ? memchr(exchange->text, '\n', exchange->n) : NULL;
        size_t size = exchange->size > 0 ? 2 * exchange->size : 4096;

        if (end != NULL) {
            exchange->line_n = (size_t)(end - exchange->text) + 1;
            return 0;
        }
        if (exchange->n == exchange->size) {
            char *larger = realloc(exchange->text, size);

            if (larger == NULL)
                return -1;
            exchange->text = larger;
            exchange->size = size;
        }
        if (limit_wait(exchange->fd, exchange->deadline) == -1)
            return -1;
        n = receive_piece(exchange);
        if (n == 0)
            errno = 0;
        if (n == 0 || (n == -1 && errno != EINTR))
            return -1;
        exchange->n += n > 0 ? (size_t)n : 0;
    }
}

int cli_receive_next(struct cli_exchange *exchange)
{
    int received;

    do {
        exchange->deadline = cli_now_ms() + NEXT_MS;
        received = cli_receive(exchange);
    } while (received == -1 && errno == EAGAIN);
    return received;
}

void cli_disconnect(struct cli_exchange *exchange)
{
    if (exchange->fd != -1) {
        close(exchange->fd);
        descriptor_close(exchange->passed);
    }
    free(exchange->text);
    *exchange = (struct cli_exchange) { .fd = -1 };
}

/* Printing */

void cli_print_line(const struct cli_exchange *exchange)
{
    if (exchange->line_n > 0)
        fwrite(exchange->text, 1, exchange->line_n, stdout);
}

static void print_diag_message(const struct diag_message *message, struct log *log)
{
    if (message->line != 0)
        log_write(log, (enum log_level)message->level, 0, "%s in %s:%d:%d", message->text,
            message->file, (int)message->line, (int)message->column);
    else
        log_write(log, (enum log_level)message->level, 0, "%s", message->text);
    fputs(message->excerpt, stderr);
}

/* Returns the end of the error line; `in_force` is "" where it is unknown. */
static const char *unchanged_part(const char *order, const char *in_force)
{
    if (strcmp(in_force, "new") == 0)
        return ", and the previous configuration could not be started again: the new configuration "
               "stays in force";
    if (strcmp(in_force, "previous") == 0)
        return ": the previous configuration is in force again";
    if (strcmp(order, "resume") == 0)
        return ": nothing has changed";
    if (strcmp(order, "reload") == 0)
        return ": the previous configuration stays in force";
    return strcmp(order, "upgrade") == 0 ? ": nothing has changed, the daemon continues to serve"
                                         : "";
}

void cli_print_error(struct json_value reply, struct log *log)
{
    char error[4096];

    if (!json_text(json_member(reply, "error"), error, sizeof(error)))
        snprintf(error, sizeof(error), "the daemon's reply is not valid");
    log_write(log, LEVEL_EMERG, 0, "%s", error);
}

int cli_print_outcome(
    const struct cmdline *cmdline, const struct cli_exchange *reply, struct log *log)
{
    struct json_value outcome = json_parse(reply->text, reply->line_n);
    struct json_value messages = json_member(outcome, "messages"), at = { NULL, 0 };
    bool ok = json_is_true(json_member(outcome, "ok")), shown = false;
    int64_t pid = json_integer(json_member(outcome, "pid"), 0);
    struct diag_message message;
    char in_force[16] = "";

    while (!(ok && cmdline->quiet) && diag_from_json(messages, &at, &message)) {
        print_diag_message(&message, log);
        shown = true;
    }
    if (ok) {
        if (pid > 0 && !cmdline->quiet)
            log_write(log, LEVEL_NOTICE, 0,
                "the new binary serves now, process %d, beside the old binary: \"forkbeard upgrade "
                "forward\" ends the old binary, \"forkbeard upgrade back\" takes the upgrade back",
                (int)pid);
        return EXIT_SUCCESS;
    }
    if (!shown)
        cli_print_error(outcome, log);
    json_text(json_member(outcome, "in_force"), in_force, sizeof(in_force));
    log_write(log, LEVEL_ERROR, 0, "%s failed%s", cmdline->signal,
        unchanged_part(cmdline->signal, in_force));
    return EXIT_FAILURE;
}

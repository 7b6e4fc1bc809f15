/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends one request to the daemon and prints its reply. The daemon may be of another version: a
 * missing member of the reply counts as empty, and no assertion depends on the reply. */
#include "cli/command.h"

#include "base/diag_json.h"
#include "cli/status_text.h"
#include "process/config_check.h"
#include "process/pidfile.h"
#include "process/signals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A reply line of the daemon. */
struct reply {
    char *text; /* NULL: there is none */
    size_t n;
};

/* How long a command may take unless --timeout says so: a reload and an upgrade check a
 * configuration and start workers. */
#define REPLY_MS 5000
#define OUTCOME_MS 180000

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Limits how long the next call on the socket waits to what is left until the deadline; -1 with
 * errno EAGAIN when it has passed. */
static int limit_wait(int fd, int64_t deadline)
{
    int64_t ms = deadline - now_ms();
    struct timeval limit = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

    if (ms <= 0) {
        errno = EAGAIN;
        return -1;
    }
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == -1)
        return -1;
    return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

/* Returns a connected socket; -1 with errno, EAGAIN when the deadline has passed. */
static int connect_to(const char *path, int64_t deadline)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd, error;

    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd == -1 || (limit_wait(fd, deadline) == 0 &&
                        connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0))
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Returns the command that the daemon is sent. */
static const char *command_word(const struct cmdline *cmdline)
{
    return cmdline->signal != NULL ? cmdline->signal : cmdline->word->name;
}

static int64_t timeout_ms(const struct cmdline *cmdline)
{
    const char *word = command_word(cmdline);

    if (cmdline->timeout_ms != 0)
        return cmdline->timeout_ms;
    return strcmp(word, "reload") == 0 || strcmp(word, "upgrade") == 0 ? OUTCOME_MS : REPLY_MS;
}

static int send_command(int fd, const char *command)
{
    char request[64];
    int n = snprintf(request, sizeof(request), "{\"command\":\"%s\"}\n", command);
    ssize_t sent;

    do
        sent = send(fd, request, (size_t)n, MSG_NOSIGNAL); /* a new socket has room for it */
    while (sent == -1 && errno == EINTR);
    /* a daemon that refuses the client may have closed the connection: its reply has the reason */
    return sent == n || errno == EPIPE ? 0 : -1;
}

/* Receives up to the line's end; without a reply, and with errno 0, if the daemon has closed the
 * connection first, or errno EAGAIN if it has not replied until the deadline. */
static struct reply receive_reply(int fd, int64_t deadline)
{
    struct reply reply = { NULL, 0 };
    size_t size = 0;

    while (reply.n == 0 || reply.text[reply.n - 1] != '\n') {
        ssize_t n = 0;

        if (size == reply.n) {
            char *larger = realloc(reply.text, size = size > 0 ? 2 * size : 4096);

            if (larger == NULL)
                break;
            reply.text = larger;
        }
        n = limit_wait(fd, deadline);
        if (n == 0)
            n = recv(fd, reply.text + reply.n, size - reply.n, 0);
        if (n == -1 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n == 0 ? 0 : errno;
            free(reply.text);
            return (struct reply) { NULL, 0 };
        }
        reply.n += (size_t)n;
    }
    return reply;
}

/* Reports a daemon that has not answered; returns the exit code. */
static int report_silence(const struct cmdline *cmdline, const char *path, struct log *log)
{
    int64_t ms = timeout_ms(cmdline);

    log_write(log, LEVEL_EMERG, 0,
        "the daemon with the control socket \"%s\" did not reply to \"%s\" within %" PRId64
        " %s: its master process may be stopped, or need longer (--timeout)",
        path, command_word(cmdline), ms % 1000 == 0 ? ms / 1000 : ms, ms % 1000 == 0 ? "s" : "ms");
    return EXIT_NO_REPLY;
}

/* Sends the command over the connection, which is closed; returns the exit code where there is no
 * reply. */
static int send_and_wait(const struct cmdline *cmdline, const char *path, int fd, int64_t deadline,
    struct reply *reply, struct log *log)
{
    int status = EXIT_SUCCESS;

    if (send_command(fd, command_word(cmdline)) == 0)
        *reply = receive_reply(fd, deadline);
    if (reply->text == NULL && errno == EAGAIN) {
        status = report_silence(cmdline, path, log);
    } else if (reply->text == NULL) {
        log_write(
            log, LEVEL_EMERG, errno, "the daemon did not reply to \"%s\"", command_word(cmdline));
        status = EXIT_FAILURE;
    }
    close(fd);
    return status;
}

/* Reads the paths of the pid file and the control socket from the configuration; NULL after a
 * report. */
static struct cycle *load_paths(const struct cmdline *cmdline, struct log *log)
{
    struct cycle_options options = cmdline->cycle;

    options.only_pid = true;
    return cycle_load(&options, log, STDERR_FILENO);
}

static void print_message(const struct diag_message *message, struct log *log)
{
    if (message->line != 0)
        log_write(log, (enum log_level)message->level, 0, "%s in %s:%d:%d", message->text,
            message->file, (int)message->line, (int)message->column);
    else
        log_write(log, (enum log_level)message->level, 0, "%s", message->text);
    fputs(message->excerpt, stderr);
}

/* Returns the end of the error line: what a failed command leaves unchanged. */
static const char *unchanged_part(const char *order)
{
    if (strcmp(order, "reload") == 0)
        return ": the previous configuration stays in force";
    return strcmp(order, "upgrade") == 0 ? ": the old process continues to serve" : "";
}

static int print_outcome(const struct cmdline *cmdline, const struct reply *reply, struct log *log)
{
    struct json_value outcome = json_parse(reply->text, reply->n);
    struct json_value messages = json_member(outcome, "messages"), at = { NULL, 0 };
    bool ok = json_is_true(json_member(outcome, "ok")), shown = false;
    int64_t pid = json_integer(json_member(outcome, "pid"), 0);
    struct diag_message message;
    char error[4096];

    while (!(ok && cmdline->quiet) && diag_from_json(messages, &at, &message)) {
        print_message(&message, log);
        shown = true;
    }
    if (ok) {
        if (pid > 0 && !cmdline->quiet)
            log_write(log, LEVEL_NOTICE, 0, "the new binary serves now, process %d", (int)pid);
        return EXIT_SUCCESS;
    }
    if (!json_text(json_member(outcome, "error"), error, sizeof(error)))
        snprintf(error, sizeof(error), "the daemon's reply is not valid");
    if (!shown)
        log_write(log, LEVEL_EMERG, 0, "%s", error);
    log_write(log, LEVEL_ERROR, 0, "%s failed%s", cmdline->signal, unchanged_part(cmdline->signal));
    return EXIT_FAILURE;
}

/* Sends the signal that has the same effect as the command; `why` is the errno of connecting to the
 * control socket, or 0 where the configuration has none. */
static int send_signal(
    const struct cmdline *cmdline, const struct cycle *cycle, int why, struct log *log)
{
    struct config_check check = { .pid = 0 };
    const struct signal_row *s = signals_table;
    pid_t pid;

    if (strcmp(cmdline->signal, "reload") == 0 &&
        config_check_run(&check, &cmdline->cycle, log, STDERR_FILENO) == -1)
        return EXIT_FAILURE; /* a configuration with mistakes is not reloaded */
    config_check_done(&check);
    pid = pidfile_read_pid(cycle->core.pid, log);
    if (pid == -1)
        return EXIT_FAILURE;
    while (s->command == NULL || strcmp(s->command, cmdline->signal) != 0)
        s++;
    if (kill(pid, s->number) == -1) {
        log_write(log, LEVEL_ALERT, errno, "kill(%d, %d) failed", (int)pid, s->number);
        return EXIT_FAILURE;
    }
    if (!cmdline->quiet)
        log_write(log, LEVEL_NOTICE, why,
            "%s was sent to process %d, see the error log for the result: there is no control "
            "socket",
            s->name, (int)pid);
    return EXIT_SUCCESS;
}

int cli_command(const struct cmdline *cmdline, struct log *log)
{
    struct cycle *cycle = load_paths(cmdline, log);
    int64_t deadline = now_ms() + timeout_ms(cmdline);
    struct reply reply = { NULL, 0 };
    int status, fd = -1;
    const char *path;

    if (cycle == NULL)
        return EXIT_FAILURE;
    errno = 0;
    path = cycle->core.control;
    if (path != NULL)
        fd = connect_to(path, deadline);
    if (fd == -1 && errno == EAGAIN)
        status = report_silence(cmdline, path, log);
    else if (fd == -1)
        status = send_signal(cmdline, cycle, errno, log);
    else if ((status = send_and_wait(cmdline, path, fd, deadline, &reply, log)) == EXIT_SUCCESS)
        status = print_outcome(cmdline, &reply, log);
    free(reply.text);
    cycle_destroy(&cycle);
    return status;
}

static int print_status(const struct cmdline *cmdline, const struct reply *reply, struct log *log)
{
    struct json_value status = json_parse(reply->text, reply->n);
    bool ok = json_is_true(json_member(status, "ok"));
    char error[4096];

    if ((cmdline->options & CMDLINE_JSON) != 0) {
        fwrite(reply->text, 1, reply->n, stdout);
    } else if (ok) {
        status_text_write(status, stdout);
    } else {
        if (!json_text(json_member(status, "error"), error, sizeof(error)))
            snprintf(error, sizeof(error), "the daemon's reply is not valid");
        log_write(log, LEVEL_EMERG, 0, "%s", error);
    }
    return ok && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int cli_status(const struct cmdline *cmdline, struct log *log)
{
    struct cycle *cycle = load_paths(cmdline, log);
    int64_t deadline = now_ms() + timeout_ms(cmdline);
    struct reply reply = { NULL, 0 };
    int status = EXIT_FAILURE, fd;
    const char *path;

    if (cycle == NULL)
        return EXIT_FAILURE;
    path = cycle->core.control;
    if (path == NULL)
        log_write(log, LEVEL_EMERG, 0,
            "the configuration has no control socket: see the directive \"control\"");
    else if ((fd = connect_to(path, deadline)) != -1)
        status = send_and_wait(cmdline, path, fd, deadline, &reply, log);
    else if (errno == EAGAIN)
        status = report_silence(cmdline, path, log);
    else
        log_write(log, LEVEL_EMERG, errno, "connect() to the control socket \"%s\" failed", path);
    if (reply.text != NULL)
        status = print_status(cmdline, &reply, log);
    free(reply.text);
    cycle_destroy(&cycle);
    return status;
}

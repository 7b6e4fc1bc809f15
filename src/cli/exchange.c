/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects, sends and receives, and waits for each no longer than until the deadline. What a line
 * says is its reader's affair. */
#include "cli/exchange.h"

#include "os/descriptor.h"
#include "os/sockets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t cli_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Sets the time limit of the next call on the socket; -1 with errno EAGAIN when the deadline has
 * passed. */
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

    *exchange = (struct cli_exchange) { .fd = -1 };
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

/* Receives once; the return value and errno are recv()'s. */
static ssize_t receive_more(struct cli_exchange *exchange)
{
    size_t size = exchange->size > 0 ? 2 * exchange->size : 4096;
    ssize_t n;

    if (exchange->n == exchange->size) {
        char *larger = realloc(exchange->text, size);

        if (larger == NULL)
            return -1;
        exchange->text = larger;
        exchange->size = size;
    }
    if (limit_wait(exchange->fd, exchange->deadline) == -1)
        return -1;
    n = recv(exchange->fd, exchange->text + exchange->n, exchange->size - exchange->n, 0);
    if (n > 0)
        exchange->n += (size_t)n;
    return n;
}

int cli_receive(struct cli_exchange *exchange)
{
    const char *end;

    exchange->n -= exchange->line_n;
    if (exchange->line_n > 0)
        memmove(exchange->text, exchange->text + exchange->line_n, exchange->n);
    exchange->line_n = 0;
    while ((end = exchange->n > 0 ? memchr(exchange->text, '\n', exchange->n) : NULL) == NULL) {
        ssize_t n = receive_more(exchange);

        if (n == -1 && errno == EINTR)
            continue;
        if (n == 0)
            errno = 0;
        if (n <= 0)
            return -1;
    }
    exchange->line_n = (size_t)(end - exchange->text) + 1;
    return 0;
}

void cli_print_line(const struct cli_exchange *exchange)
{
    if (exchange->line_n > 0)
        fwrite(exchange->text, 1, exchange->line_n, stdout);
}

void cli_disconnect(struct cli_exchange *exchange)
{
    if (exchange->fd != -1)
        close(exchange->fd);
    free(exchange->text);
    *exchange = (struct cli_exchange) { .fd = -1 };
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepts and reads without waiting, and takes messages off by their lengths (RFC 6587). */
#include "daemon/log_collector.h"

#include <ctype.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void collector_start(struct collector *collector)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
        .sin_port = htons(collector->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(address);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, n), 0);
    ck_assert_int_eq(listen(fd, COLLECTED_MAX), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &n), 0);
    collector->port = ntohs(address.sin_port);
    collector->listener = fd;
}

static void accept_connections(struct collector *collector)
{
    int fd;

    while ((fd = accept(collector->listener, NULL, NULL)) != -1) {
        ck_assert_uint_lt(collector->connection_n, COLLECTED_MAX);
        ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
        collector->connections[collector->connection_n++] = (struct collected) { .fd = fd };
    }
}

static void keep_message(struct collector *collector, const char *message, size_t n)
{
    collector->text = realloc(collector->text, collector->text_n + n + 2);
    ck_assert_ptr_nonnull(collector->text);
    memcpy(collector->text + collector->text_n, message, n);
    collector->text_n += n;
    strcpy(collector->text + collector->text_n, "\n");
    collector->text_n++;
    collector->message_n++;
}

static void take_messages(struct collector *collector, struct collected *connection)
{
    size_t begin = 0;

    while (begin < connection->n) {
        char *p = connection->bytes + begin, *rest;
        size_t n;

        ck_assert_msg(isdigit((unsigned char)*p), "no length: %.40s", p);
        n = strtoul(p, &rest, 10);
        if (*rest == '\0' || (size_t)(connection->bytes + connection->n - rest) < n + 1)
            break;
        ck_assert_msg(*rest == ' ' && rest[1] == '<', "no message: %.40s", p);
        keep_message(collector, rest + 1, n);
        begin = (size_t)(rest + 1 - connection->bytes) + n;
    }
    connection->n -= begin;
    memmove(connection->bytes, connection->bytes + begin, connection->n + 1);
}

static void close_collected(struct collector *collector, struct collected *connection)
{
    collector->torn_n += connection->n > 0;
    close(connection->fd);
    free(connection->bytes);
    *connection = collector->connections[--collector->connection_n];
}

/* Reads all there is; false: the connection has ended, and is closed. */
static bool read_connection(struct collector *collector, struct collected *connection)
{
    ssize_t n = 1;

    while (n > 0) {
        if (connection->size - connection->n < 65536) {
            connection->size += 1 << 20;
            connection->bytes = realloc(connection->bytes, connection->size);
            ck_assert_ptr_nonnull(connection->bytes);
        }
        n = recv(connection->fd, connection->bytes + connection->n, 65535, 0);
        if (n > 0) {
            connection->n += (size_t)n;
            connection->bytes[connection->n] = '\0';
            take_messages(collector, connection);
        }
    }
    if (n == 0)
        close_collected(collector, connection);
    return n != 0;
}

unsigned collector_count(struct collector *collector, const char *text)
{
    unsigned n = 0;

    if (collector->listener != -1)
        accept_connections(collector);
    for (unsigned i = 0; i < collector->connection_n;)
        i += read_connection(collector, &collector->connections[i]);
    for (const char *p = collector->text; p != NULL && (p = strstr(p, text)) != NULL; n++)
        p += strlen(text);
    return n;
}

void collector_stop(struct collector *collector)
{
    close(collector->listener);
    collector->listener = -1;
    while (collector->connection_n > 0)
        close_collected(collector, &collector->connections[0]);
}

void collector_done(struct collector *collector)
{
    collector_stop(collector);
    free(collector->text);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocking TCP and unix clients; every wait has a deadline that fails the test. */
#include "daemon/client.h"

#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_to(const void *address, socklen_t length)
{
    int64_t ms = patience_ms();
    struct timeval limit = { .tv_sec = (time_t)(ms / 1000) };
    const struct sockaddr *any = address;
    int fd = socket(any->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

    if (fd == -1)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, any, length) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

int client_try(in_port_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };

    return connect_to(&address, sizeof(address));
}

static int connected_socket(int fd, const char *where)
{
    ck_assert_msg(fd != -1, "connect() to %s failed: %s", where, strerror(errno));
    return fd;
}

int client_open(in_port_t port)
{
    return connected_socket(client_try(port), "a port");
}

int client_open6(in_port_t port)
{
    struct sockaddr_in6 address = {
        .sin6_family = AF_INET6,
        .sin6_port = htons(port),
        .sin6_addr = IN6ADDR_LOOPBACK_INIT,
    };

    return connected_socket(connect_to(&address, sizeof(address)), "::1");
}

int client_open_unix(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    ck_assert_uint_lt(strlen(path), sizeof(address.sun_path));
    strcpy(address.sun_path, path);
    return connected_socket(connect_to(&address, sizeof(address)), path);
}

int client_error(in_port_t port)
{
    int fd = client_try(port);

    if (fd == -1)
        return errno;
    close(fd);
    return 0;
}

void client_send(int fd, const char *text)
{
    size_t n = strlen(text);

    ck_assert_int_eq(send(fd, text, n, MSG_NOSIGNAL), (ssize_t)n);
}

void client_expect(int fd, const char *text)
{
    size_t length = strlen(text);
    char *received = calloc(1, length + 1);

    ck_assert_ptr_nonnull(received);
    for (size_t n = 0; n < length;) {
        ssize_t piece = recv(fd, received + n, length - n, 0);

        ck_assert_msg(piece > 0, "received \"%s\" instead of \"%s\", then %s", received, text,
            piece == 0 ? "the end" : strerror(errno));
        n += (size_t)piece;
    }
    ck_assert_str_eq(received, text);
    free(received);
}

void client_echo(int fd, const char *text)
{
    client_send(fd, text);
    client_expect(fd, text);
}

const char *client_read_line(int fd)
{
    static char line[5000];
    size_t n = 0;

    while (n == 0 || line[n - 1] != '\n') {
        ck_assert_uint_lt(n, sizeof(line));
        ck_assert_int_eq(recv(fd, line + n, 1, 0), 1);
        n++;
    }
    line[n - 1] = '\0';
    return line;
}

static ssize_t receive_byte(int fd)
{
    char byte;

    return recv(fd, &byte, 1, 0);
}

void client_expect_end(int fd)
{
    ssize_t n = receive_byte(fd);

    ck_assert_msg(n == 0, "received %s instead of the end", n > 0 ? "a byte" : strerror(errno));
}

void client_expect_gone(int fd)
{
    ssize_t n = receive_byte(fd);

    ck_assert_msg(n == 0 || (n == -1 && errno == ECONNRESET), "received %s instead of the end",
        n > 0 ? "a byte" : strerror(errno));
}

bool client_is_quiet(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == -1 && errno == EAGAIN;
}

const char *client_read_all(int fd)
{
    static char text[4096];
    size_t length = 0;
    ssize_t n;

    while ((n = recv(fd, text + length, sizeof(text) - 1 - length, 0)) > 0)
        length += (size_t)n;
    ck_assert_msg(n == 0, "recv() failed: %s", strerror(errno));
    text[length] = '\0';
    close(fd);
    return text;
}

void client_reset(int fd)
{
    static const struct linger now = { .l_onoff = 1, .l_linger = 0 };

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    close(fd);
}

struct client_status client_status(in_port_t port)
{
    struct client_status s;
    const char *text = client_read_all(client_open(port));
    int n = sscanf(text,
        "Active connections: %" SCNu64 " server accepts handled requests %" SCNu64 " %" SCNu64
        " %" SCNu64 " Reading: %" SCNu64 " Writing: %" SCNu64 " Waiting: %" SCNu64,
        &s.active, &s.accepts, &s.handled, &s.requests, &s.reading, &s.writing, &s.waiting);

    ck_assert_msg(n == 7, "the status is \"%s\"", text);
    return s;
}

void client_run_session(in_port_t port)
{
    int client = client_open(port);

    client_echo(client, "x");
    ck_assert_int_eq(shutdown(client, SHUT_WR), 0);
    client_expect_end(client);
    close(client);
}

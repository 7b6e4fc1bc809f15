/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of tests/tls.test, whose TLS is a library's (mbedtls.c, wolfssl.c):
 *
 *     CLIENT ADDRESS PORT NAME
 *
 * sends standard input, and writes the server's bytes to standard output. New keys follow each 128
 * KiB. Behind the end of standard input the client sends close_notify, and has to get one of the
 * server's, unless NO_REPLY is in the environment. */
#include "pump.h"

#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE 16384
#define PIECES_PER_KEY 8

struct pump {
    int fd;
    struct session *session;
    char out[PIECE]; /* bytes of standard input, on the way to the server */
    size_t out_n;    /* bytes */
    size_t out_at;   /* bytes that are sent already */
    unsigned piece_n;
    bool update;    /* keys are to be changed before the next piece */
    bool ended;     /* standard input */
    bool closed;    /* close_notify is sent */
    bool is_closed; /* close_notify has come */
};

static int connect_to(const char *address, const char *port)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd == -1 || inet_pton(AF_INET, address, &in.sin_addr) != 1 ||
        connect(fd, (struct sockaddr *)&in, sizeof(in)) == -1)
        err(1, "connect");
    return fd;
}

static void write_all(const char *p, size_t n)
{
    while (n > 0) {
        ssize_t written = write(STDOUT_FILENO, p, n);

        if (written == -1)
            err(1, "write");
        p += written;
        n -= (size_t)written;
    }
}

/* Writes out all that has come. */
static void receive(struct pump *pump)
{
    char in[PIECE];
    ssize_t n;

    while ((n = session_read(pump->session, in, sizeof(in))) > 0)
        write_all(in, (size_t)n);
    pump->is_closed = n != SESSION_WAITS;
    if (pump->is_closed && !pump->closed)
        errx(1, "the server has ended the session first");
    if (n == SESSION_CUT && getenv("NO_REPLY") == NULL)
        errx(1, "no close_notify comes back");
}

/* Sends the bytes of standard input; true: the library waits. */
static bool send_piece(struct pump *pump)
{
    if (pump->update && session_update_keys(pump->session) == SESSION_WAITS)
        return true;
    pump->update = false;
    while (pump->out_at < pump->out_n) {
        ssize_t n =
            session_write(pump->session, pump->out + pump->out_at, pump->out_n - pump->out_at);

        if (n == SESSION_WAITS)
            return true;
        pump->out_at += (size_t)n;
        pump->update = pump->out_at == pump->out_n && ++pump->piece_n % PIECES_PER_KEY == 0;
    }
    if (pump->ended && !pump->closed) {
        if (session_close(pump->session) == SESSION_WAITS)
            return true;
        pump->closed = true;
    }
    return false;
}

static void take_input(struct pump *pump)
{
    ssize_t n = read(STDIN_FILENO, pump->out, sizeof(pump->out));

    if (n == -1)
        err(1, "read");
    pump->ended = n == 0;
    pump->out_n = (size_t)n;
    pump->out_at = 0;
}

int main(int argc, char **argv)
{
    struct pump pump = { .fd = -1 };

    if (argc != 4)
        errx(2, "usage: %s ADDRESS PORT NAME", argv[0]);
    signal(SIGPIPE, SIG_IGN);
    pump.fd = connect_to(argv[1], argv[2]);
    pump.session = session_open(pump.fd, argv[3]);
    if (fcntl(pump.fd, F_SETFL, O_NONBLOCK) == -1)
        err(1, "fcntl");
    while (!pump.is_closed) {
        bool waits = send_piece(&pump);
        struct pollfd polled[2] = {
            { .fd = pump.fd, .events = waits ? POLLIN | POLLOUT : POLLIN },
            { .fd = pump.ended || waits ? -1 : STDIN_FILENO, .events = POLLIN },
        };

        if (poll(polled, 2, 60000) <= 0)
            errx(1, "nothing comes from the server");
        if (polled[0].revents != 0)
            receive(&pump);
        if (polled[1].revents != 0)
            take_input(&pump);
    }
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes between pairs of real sockets; the operations count their calls, and every byte is
 * compared. */
#include "net/splicing.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The bytes that are sent: at a place stands the table's byte at the place modulo a prime. */
#define PERIOD 65521

static uint8_t table[2 * PERIOD];

unsigned recvs, splices_in, splices_out;

static struct io_result counting_recv(struct source *source, struct io_span *span)
{
    recvs++;
    return io_socket.recv(source, span);
}

static struct io_result counting_splice_in(struct source *source, int pipe, size_t n)
{
    splices_in++;
    return io_socket.splice_in(source, pipe, n);
}

static struct io_result counting_splice_out(struct source *source, int pipe, size_t n)
{
    splices_out++;
    return io_socket.splice_out(source, pipe, n);
}

static void nothing(struct fb_conn *conn)
{
    (void)conn;
}

static size_t no_data(struct fb_conn *conn, fb_bytes in)
{
    (void)conn;
    ck_abort_msg("piped connections have no data");
    return in.n;
}

static void no_eof(struct fb_conn *conn, fb_bytes rest)
{
    (void)conn;
    (void)rest;
    ck_abort_msg("piped connections have no eof");
}

static void closed(struct fb_conn *conn, fb_reason reason)
{
    struct pipe_end *end = conn->owner;

    end->closings++;
    end->reason = reason;
    end->conn = NULL;
}

static void describe(const struct fb_conn *conn, struct log_line *line, char client[ADDRESS_TEXT])
{
    (void)conn;
    (void)client;
    line->server = "splicing";
}

static const struct conn_ops ops = {
    .opened = nothing,
    .data = no_data,
    .eof = no_eof,
    .writable = nothing,
    .expired = nothing,
    .closed = closed,
    .describe = describe,
};

unsigned count_descriptors(const char *like)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;
    unsigned n = 0;

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL) {
        char text[64];
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, text, sizeof(text) - 1);

        if (length >= (ssize_t)strlen(like) && strncmp(text, like, strlen(like)) == 0)
            n++;
    }
    closedir(dir);
    return n;
}

struct splicing *splicing_start(int i)
{
    struct splicing *splicing = calloc(1, sizeof(*splicing));
    struct net_options options = { .connections_max = 64, .lingering_timeout = 5000 };

    ck_assert_ptr_nonnull(splicing);
    for (size_t k = 0; k < sizeof(table); k++)
        table[k] = (uint8_t)((k % PERIOD) * 2654435761u >> 13);
    splicing->descriptors = count_descriptors("");
    splicing->tcp = i % 2 == 0;
    splicing->target.fd = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ne(splicing->target.fd, -1);
    splicing->target.level = LEVEL_NOTICE;
    log_init(&splicing->log, &splicing->target, 1);
    splicing->io = io_socket;
    splicing->io.recv = counting_recv;
    splicing->io.splice_in = counting_splice_in;
    splicing->io.splice_out = counting_splice_out;
    splicing->mechanism = i / 2 == 0 ? mechanism_epoll : mechanism_poll;
    splicing->mechanism.io = &splicing->io;
    options.mechanism = &splicing->mechanism;
    options.mechanism_values = mechanism_defaults(&splicing->mechanism);
    options.log = &splicing->log;
    options.counters = &splicing->counters;
    options.heartbeat = &splicing->heartbeat;
    ck_assert_int_eq(net_init(&splicing->net, &options), 0);
    return splicing;
}

void splicing_stop(struct splicing *splicing)
{
    char text[256];

    net_fail_all(&splicing->net, FB_DRAINED);
    net_done(&splicing->net);
    ck_assert_int_eq(pread(splicing->target.fd, text, sizeof(text), 0), 0);
    close(splicing->target.fd);
    ck_assert_uint_eq(count_descriptors(""), splicing->descriptors);
    free(splicing);
}

static void make_tcp_pair(int fds[2])
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fds[1], (struct sockaddr *)&address, length), 0);
    fds[0] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ne(fds[0], -1);
    ck_assert_int_eq(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    close(listener);
}

static void open_end(struct splicing *splicing, struct pipe_end *end)
{
    struct sockaddr_in peer = { .sin_family = AF_INET };
    int fds[2];

    if (splicing->tcp)
        make_tcp_pair(fds);
    else
        ck_assert_int_eq(
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    *end = (struct pipe_end) { .far = fds[1] };
    end->conn = conn_create(&splicing->net, fds[0], (struct sockaddr *)&peer, &ops, end);
    ck_assert_ptr_nonnull(end->conn);
    conn_open_soon(end->conn);
}

void splicing_turn(struct splicing *splicing)
{
    struct loop *loop = &splicing->net.loop;

    loop_promote(loop);
    loop_wait(loop, loop_is_empty(loop, QUEUE_NORMAL) ? 1 : 0);
    timers_run(&loop->timers);
    loop_run(loop, QUEUE_NORMAL);
}

void splicing_open_pipe(struct splicing *splicing, struct pipe_end ends[2])
{
    splicing_open_pipe_with(splicing, ends, &(const struct conn_pipe_options) { 0 });
}

void splicing_open_pipe_with(
    struct splicing *splicing, struct pipe_end ends[2], const struct conn_pipe_options *options)
{
    for (int i = 0; i < 2; i++)
        open_end(splicing, &ends[i]);
    loop_run(&splicing->net.loop, QUEUE_NORMAL);
    ck_assert_int_eq(conn_pipe(ends[0].conn, ends[1].conn, options), 0);
    net_flush(&splicing->net);
    recvs = splices_in = splices_out = 0;
}

void splicing_close_far(struct pipe_end ends[2])
{
    for (int i = 0; i < 2; i++)
        close(ends[i].far);
}

void pipe_end_say(struct pipe_end *end, size_t until)
{
    while (end->said < until) {
        size_t at = end->said % PERIOD, n = until - end->said;
        ssize_t sent = send(end->far, table + at, n < PERIOD ? n : PERIOD, MSG_NOSIGNAL);

        if (sent == -1)
            ck_assert_int_eq(errno, EAGAIN);
        if (sent <= 0)
            return;
        end->said += (size_t)sent;
    }
}

void pipe_end_hear(struct pipe_end *end, size_t n)
{
    static uint8_t bytes[PERIOD];

    while (n > 0 && !end->heard_end) {
        ssize_t got = recv(end->far, bytes, n < PERIOD ? n : PERIOD, 0);

        if (got == -1)
            ck_assert_int_eq(errno, EAGAIN);
        if (got < 0)
            return;
        end->heard_end = got == 0;
        ck_assert_int_eq(memcmp(bytes, table + end->heard % PERIOD, (size_t)got), 0);
        end->heard += (size_t)got;
        n -= (size_t)got;
    }
}

uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void splicing_move(struct splicing *splicing, struct pipe_end *from, struct pipe_end *to, size_t n)
{
    size_t until = from->said + n;

    splicing_turn_until(
        splicing, to->heard == until, (pipe_end_say(from, until), pipe_end_hear(to, SIZE_MAX)));
}

void splicing_fill(struct splicing *splicing, struct pipe_end *from)
{
    size_t before;

    do {
        before = from->said;
        pipe_end_say(from, SIZE_MAX / 2);
        for (int i = 0; i < 3; i++)
            splicing_turn(splicing);
    } while (from->said != before);
}

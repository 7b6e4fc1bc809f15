/* SPDX-License-Identifier: BSD-2-Clause */
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

/* What is sent: the byte at a place is that of the table at the place modulo a prime. */
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
    struct side *side = conn->owner;

    side->closings++;
    side->reason = reason;
    side->conn = NULL;
}

static void describe(const struct fb_conn *conn, struct log_line *line, char client[ADDRESS_TEXT])
{
    (void)conn;
    (void)client;
    line->server = "rig";
}

static const struct conn_ops ops = {
    .opened = nothing,
    .data = no_data,
    .eof = no_eof,
    .writable = nothing,
    .moved = nothing,
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

struct rig *set_up(int i)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    struct net_options options = { .connections_max = 64, .lingering_timeout = 5000 };

    ck_assert_ptr_nonnull(rig);
    for (size_t k = 0; k < sizeof(table); k++)
        table[k] = (uint8_t)((k % PERIOD) * 2654435761u >> 13);
    rig->descriptors = count_descriptors("");
    rig->tcp = i % 2 == 0;
    rig->target.fd = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ne(rig->target.fd, -1);
    rig->target.level = LEVEL_NOTICE;
    log_init(&rig->log, &rig->target, 1);
    rig->io = io_socket;
    rig->io.recv = counting_recv;
    rig->io.splice_in = counting_splice_in;
    rig->io.splice_out = counting_splice_out;
    rig->mechanism = i / 2 == 0 ? mechanism_epoll : mechanism_poll;
    rig->mechanism.io = &rig->io;
    options.mechanism = &rig->mechanism;
    options.mechanism_option = rig->mechanism.option.initial;
    options.log = &rig->log;
    options.counters = &rig->counters;
    ck_assert_int_eq(net_init(&rig->net, &options), 0);
    return rig;
}

void tear_down(struct rig *rig)
{
    char text[256];

    net_fail_all(&rig->net, FB_DRAINED);
    net_done(&rig->net);
    ck_assert_int_eq(pread(rig->target.fd, text, sizeof(text), 0), 0);
    close(rig->target.fd);
    ck_assert_uint_eq(count_descriptors(""), rig->descriptors);
    free(rig);
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

static void open_side(struct rig *rig, struct side *side)
{
    struct sockaddr_in peer = { .sin_family = AF_INET };
    int fds[2];

    if (rig->tcp)
        make_tcp_pair(fds);
    else
        ck_assert_int_eq(
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    *side = (struct side) { .far = fds[1] };
    side->conn = conn_create(&rig->net, fds[0], (struct sockaddr *)&peer, &ops, side);
    ck_assert_ptr_nonnull(side->conn);
}

void turn(struct rig *rig)
{
    struct loop *loop = &rig->net.loop;

    loop_promote(loop);
    loop_wait(loop, TAILQ_EMPTY(&loop->queues[QUEUE_NORMAL]) ? 1 : 0);
    timers_expire(loop);
    loop_run(loop, QUEUE_NORMAL);
}

void open_pipe(struct rig *rig, struct side sides[2])
{
    for (int i = 0; i < 2; i++)
        open_side(rig, &sides[i]);
    loop_run(&rig->net.loop, QUEUE_NORMAL);
    ck_assert_int_eq(conn_pipe(sides[0].conn, sides[1].conn, 0), 0);
    net_flush(&rig->net);
    recvs = splices_in = splices_out = 0;
}

void close_far(struct side sides[2])
{
    for (int i = 0; i < 2; i++)
        close(sides[i].far);
}

void say(struct side *side, size_t until)
{
    while (side->said < until) {
        size_t at = side->said % PERIOD, n = until - side->said;
        ssize_t sent = send(side->far, table + at, n < PERIOD ? n : PERIOD, MSG_NOSIGNAL);

        if (sent == -1)
            ck_assert_int_eq(errno, EAGAIN);
        if (sent <= 0)
            return;
        side->said += (size_t)sent;
    }
}

void hear(struct side *side, size_t n)
{
    static uint8_t bytes[PERIOD];

    while (n > 0 && !side->heard_end) {
        ssize_t got = recv(side->far, bytes, n < PERIOD ? n : PERIOD, 0);

        if (got == -1)
            ck_assert_int_eq(errno, EAGAIN);
        if (got < 0)
            return;
        side->heard_end = got == 0;
        ck_assert_int_eq(memcmp(bytes, table + side->heard % PERIOD, (size_t)got), 0);
        side->heard += (size_t)got;
        n -= (size_t)got;
    }
}

uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void move(struct rig *rig, struct side *from, struct side *to, size_t n)
{
    size_t until = from->said + n;

    turn_until(rig, to->heard == until, (say(from, until), hear(to, SIZE_MAX)));
}

void stuff(struct rig *rig, struct side *from)
{
    size_t before;

    do {
        before = from->said;
        say(from, SIZE_MAX / 2);
        for (int i = 0; i < 3; i++)
            turn(rig);
    } while (from->said != before);
}

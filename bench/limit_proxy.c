/* SPDX-License-Identifier: BSD-2-Clause */
/* limit_proxy PORT TO [splice]: the smallest proxy on epoll; copies, or splices by a pipe in both
 * directions. */
#include "bench/limit.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDS_MAX 65536
#define PIECE 65536

/* Of each socket: its counterpart, and on the way there a pipe, or the bytes without room in the
 * counterpart. */
struct half {
    int peer, pipe[2];
    size_t waiting; /* bytes in the pipe, or kept */
    char *kept;
};

static struct half halves[FDS_MAX];
static bool splices;
static int epoll;

static void end(int fd)
{
    int peer = halves[fd].peer;

    if (splices) {
        close(halves[fd].pipe[0]);
        close(halves[fd].pipe[1]);
        close(halves[peer].pipe[0]);
        close(halves[peer].pipe[1]);
    }
    free(halves[fd].kept);
    free(halves[peer].kept);
    halves[fd] = halves[peer] = (struct half) { 0 };
    close(fd);
    close(peer);
}

/* Bytes without room wait in their source socket until the counterpart is writable. */
static void set_events(int fd, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.fd = fd };

    epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
}

static void begin(int listener, int to)
{
    struct epoll_event event = { .events = EPOLLIN };
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), server;

    if (client == -1)
        return;
    server = limit_connect(to);
    if (server == -1 || client >= FDS_MAX || server >= FDS_MAX)
        errx(1, "too many descriptors");
    halves[client] = (struct half) { .peer = server };
    halves[server] = (struct half) { .peer = client };
    if (splices && (pipe2(halves[client].pipe, O_CLOEXEC | O_NONBLOCK) == -1 ||
                       pipe2(halves[server].pipe, O_CLOEXEC | O_NONBLOCK) == -1))
        err(1, "pipe");
    event.data.fd = client;
    epoll_ctl(epoll, EPOLL_CTL_ADD, client, &event);
    event.data.fd = server;
    epoll_ctl(epoll, EPOLL_CTL_ADD, server, &event);
}

/* Stops reading until the peer is writable. */
static void rest(int fd)
{
    set_events(fd, 0);
    set_events(halves[fd].peer, EPOLLIN | EPOLLOUT);
}

static void keep(int fd, const char *bytes, size_t n)
{
    char *kept = malloc(n);

    if (kept == NULL)
        err(1, "memory");
    memcpy(kept, bytes, n);
    free(halves[fd].kept);
    halves[fd].kept = kept;
    halves[fd].waiting = n;
    rest(fd);
}

static void send_on(int fd, const char *bytes, size_t n)
{
    ssize_t sent = send(halves[fd].peer, bytes, n, MSG_NOSIGNAL);

    if (sent == (ssize_t)n)
        return;
    if (sent == -1 && errno != EAGAIN)
        end(fd);
    else
        keep(fd, bytes + (sent > 0 ? sent : 0), n - (size_t)(sent > 0 ? sent : 0));
}

static void copy(int fd)
{
    static char bytes[PIECE];
    ssize_t n;

    if (halves[fd].waiting > 0) {
        size_t kept = halves[fd].waiting;

        memcpy(bytes, halves[fd].kept, kept);
        halves[fd].waiting = 0;
        send_on(fd, bytes, kept);
        return;
    }
    n = recv(fd, bytes, sizeof(bytes), 0);
    if (n > 0)
        send_on(fd, bytes, (size_t)n);
    else if (n == 0 || errno != EAGAIN)
        end(fd);
}

static void forward(int fd)
{
    struct half *half = &halves[fd];
    ssize_t n;

    if (half->waiting == 0) {
        n = splice(fd, NULL, half->pipe[1], NULL, PIECE, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
        if (n == 0 || (n == -1 && errno != EAGAIN)) {
            end(fd);
            return;
        }
        half->waiting = n > 0 ? (size_t)n : 0;
    }
    if (half->waiting == 0)
        return;
    n = splice(
        half->pipe[0], NULL, half->peer, NULL, half->waiting, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n > 0)
        half->waiting -= (size_t)n;
    if (half->waiting > 0)
        rest(fd);
}

static void resume(int fd)
{
    int from = halves[fd].peer;

    set_events(fd, EPOLLIN);
    set_events(from, EPOLLIN);
    if (splices)
        forward(from);
    else
        copy(from);
}

int main(int argc, char **argv)
{
    struct epoll_event events[512], event = { .events = EPOLLIN };
    int listener, to;

    if (argc < 3)
        errx(2, "usage: limit_proxy PORT TO [splice]");
    signal(SIGPIPE, SIG_IGN);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    splices = argc > 3 && strcmp(argv[3], "splice") == 0;
    to = atoi(argv[2]);
    listener = limit_listen(argv[1]);
    event.data.fd = listener;
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n = epoll_wait(epoll, events, 512, -1);

        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;

            if (fd == listener)
                begin(listener, to);
            else if (halves[fd].peer != 0 && (events[i].events & EPOLLOUT))
                resume(fd);
            else if (halves[fd].peer != 0 && splices)
                forward(fd);
            else if (halves[fd].peer != 0)
                copy(fd);
        }
    }
}

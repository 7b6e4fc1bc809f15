/* SPDX-License-Identifier: BSD-2-Clause */
/* limit_echo PORT: the smallest echo server on epoll. */
#include "bench/limit.h"

#include <err.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the peer has no room for is waited for with a blocking call, as nothing smaller is right. */
static void echo(int fd, const char *bytes, size_t n)
{
    ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

    while (sent >= 0 && (size_t)sent < n) {
        bytes += sent;
        n -= (size_t)sent;
        sent = send(fd, bytes, n, MSG_NOSIGNAL);
    }
}

int main(int argc, char **argv)
{
    static char bytes[65536];
    struct epoll_event events[512], event = { .events = EPOLLIN };
    int epoll = epoll_create1(EPOLL_CLOEXEC), listener;

    if (argc != 2)
        errx(2, "usage: limit_echo PORT");
    listener = limit_listen(argv[1]);
    event.data.fd = listener;
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n = epoll_wait(epoll, events, 512, -1);

        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            ssize_t got;

            if (fd == listener) {
                event.data.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
                epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
                continue;
            }
            got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
            if (got > 0)
                echo(fd, bytes, (size_t)got);
            else if (got == 0)
                close(fd);
        }
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* limit_source PORT: sends bytes without end on every connection, until the client closes. */
#include "bench/limit.h"

#include <err.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const char bytes[65536];
    struct epoll_event events[64], event = { .events = EPOLLIN };
    int epoll = epoll_create1(EPOLL_CLOEXEC), listener;

    if (argc != 2)
        errx(2, "usage: limit_source PORT");
    listener = limit_listen(argv[1]);
    event.data.fd = listener;
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    event.events = EPOLLOUT;
    for (;;) {
        int n = epoll_wait(epoll, events, 64, -1);

        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;

            if (fd == listener) {
                event.data.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
            } else if (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) == -1 && errno != EAGAIN) {
                close(fd);
            }
        }
    }
}

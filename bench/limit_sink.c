/* SPDX-License-Identifier: BSD-2-Clause */
/* limit_sink PORT: receives and drops bytes on every connection, until the client closes. */
#include "bench/limit.h"

#include <err.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char bytes[262144];
    struct epoll_event events[64], event = { .events = EPOLLIN };
    int epoll = epoll_create1(EPOLL_CLOEXEC), listener;

    if (argc != 2)
        errx(2, "usage: limit_sink PORT");
    listener = limit_listen(argv[1]);
    event.data.fd = listener;
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n = epoll_wait(epoll, events, 64, -1);

        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;

            if (fd == listener) {
                event.data.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
                epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
            } else if (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) == 0) {
                close(fd);
            }
        }
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* limit_return PORT: the smallest server to accept, write and close. */
#include "bench/limit.h"

#include <err.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const char text[] = "hello\n";
    struct epoll_event event = { .events = EPOLLIN };
    int epoll = epoll_create1(EPOLL_CLOEXEC), listener;

    if (argc != 2)
        errx(2, "usage: limit_return PORT");
    listener = limit_listen(argv[1]);
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int fd;

        if (epoll_wait(epoll, &event, 1, -1) != 1)
            continue;
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd == -1)
            continue;
        send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL);
        close(fd);
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the limit servers' sockets. */
#include "bench/limit.h"

#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

static struct sockaddr_in address_of(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

void limit_no_delay(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

int limit_listen(const char *text)
{
    struct sockaddr_in address = address_of(atoi(text));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == -1 || listen(fd, 4096) == -1)
        err(1, "port %s", text);
    return fd;
}

int limit_connect(int port)
{
    struct sockaddr_in address = address_of(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    connect(fd, (struct sockaddr *)&address, sizeof(address));
    return fd;
}

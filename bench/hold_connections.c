/* SPDX-License-Identifier: BSD-2-Clause */
/* hold_connections PORT N: opens N connections to 127.0.0.1, has a byte echoed on each, says "held"
 * and keeps them until its standard input ends. */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connects under way at once, fewer than any backlog. */
#define BATCH 256

/* Every 16,000 connections have a source address of their own: a port number has 16 bits. */
static int open_connection(int port, int index)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    struct sockaddr_in from = { .sin_family = AF_INET };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + (uint32_t)index / 16000);
    if (fd == -1)
        err(1, "socket");
    if (bind(fd, (struct sockaddr *)&from, sizeof(from)) == -1)
        err(1, "bind");
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == -1)
        err(1, "connect");
    if (send(fd, "x", 1, 0) != 1)
        err(1, "send");
    return fd;
}

int main(int argc, char **argv)
{
    int port, n, fds[BATCH];
    char byte;

    if (argc != 3)
        errx(1, "usage: hold_connections PORT N");
    port = atoi(argv[1]);
    n = atoi(argv[2]);
    for (int i = 0; i < n; i += BATCH) {
        int batch = n - i < BATCH ? n - i : BATCH;

        for (int j = 0; j < batch; j++)
            fds[j] = open_connection(port, i + j);
        for (int j = 0; j < batch; j++)
            if (recv(fds[j], &byte, 1, 0) != 1)
                err(1, "recv");
    }
    puts("held");
    fflush(stdout);
    return read(STDIN_FILENO, &byte, 1) == -1;
}

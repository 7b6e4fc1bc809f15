/* SPDX-License-Identifier: BSD-2-Clause */
/* The loopback network, which may deliver a little late: from a thread of the kernel, when the
 * processor is busy. Packets of a processor, shared by all of a play's threads, are delivered in
 * order: when ours is here, earlier packets are. */
#include "plays/play_private.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* A packet may be the answer of a delivered packet: connections begin with three. */
#define ANSWERS 3

void play_network_open(struct play *play)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof(address);
    struct sockaddr *any = (struct sockaddr *)&address;

    play->packets = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    test_require(play->packets != -1);
    test_require(bind(play->packets, any, length) == 0);
    test_require(getsockname(play->packets, any, &length) == 0);
    test_require(connect(play->packets, any, length) == 0);
}

void play_network_close(struct play *play)
{
    close(play->packets);
}

void play_network_settle(struct play *play)
{
    char byte = 0;

    for (int i = 0; i < ANSWERS; i++) {
        test_require(send(play->packets, &byte, 1, 0) == 1);
        test_require(recv(play->packets, &byte, 1, 0) == 1);
    }
}

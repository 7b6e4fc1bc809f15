/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker in an attacker's hands that floods its keeper: with the ClientHello that a client sends
 * first, the worker begins handshakes each millisecond, as many as the link takes, and cancels
 * them. Later bytes of the client are answered by the number of handshakes, on a line. */
#include "tls/message.h"

#include <forkbeard/forkbeard.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define HANDSHAKES_A_TURN 1000
#define DESCRIPTORS 1024

struct flood {
    uint8_t hello[TLS_FEED_MOST];
    size_t hello_n;
    unsigned long n;
    bool begun; /* the place is taken, since the link was full behind a begin */
};

/* Finds the link: of both sockets of packets the one with the lower number, since the channel came
 * by the fork, from the master with its many descriptors. */
static int find_link(void)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        int type = 0;
        socklen_t length = sizeof(type);

        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET)
            return fd;
    }
    return -1;
}

static bool send_request(int link, const struct tls_request *request)
{
    static uint8_t packet[TLS_REQUEST_MOST];
    size_t n = tls_message_write_request(request, packet);

    return send(link, packet, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
}

/* The place of a forgotten handshake is free for the next. */
static void flood_keeper(struct flood *flood)
{
    struct tls_request begin = {
        .kind = TLS_BEGIN,
        .number = (1u << TLS_PLACE_BITS) + TLS_HANDSHAKES_MOST - 1,
        .start.role = TLS_SERVER,
        .in = { flood->hello, flood->hello_n },
    };
    struct tls_request cancel = { .kind = TLS_CANCEL, .number = begin.number };
    int link = find_link();

    for (unsigned i = 0; i < 2 * HANDSHAKES_A_TURN; i++) {
        if (!send_request(link, flood->begun ? &cancel : &begin))
            return;
        flood->n += !flood->begun;
        flood->begun = !flood->begun;
    }
}

static size_t flooder_data(fb_conn *conn, void *state, fb_bytes in)
{
    struct flood *flood = state;
    char line[32];

    if (flood->hello_n > 0) {
        snprintf(line, sizeof(line), "%lu\n", flood->n);
        fb_write(conn, line, strlen(line));
        return in.n;
    }
    flood->hello_n = in.n < sizeof(flood->hello) ? in.n : sizeof(flood->hello);
    memcpy(flood->hello, in.p, flood->hello_n);
    fb_timer(conn, 1, 1);
    return in.n;
}

static void flooder_timer(fb_conn *conn, void *state, uint32_t id)
{
    flood_keeper(state);
    fb_timer(conn, id, 1);
}

static const fb_directive directives[] = {
    { .name = "flooder", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .data = flooder_data,
    .timer = flooder_timer,
};

FB_PROTOCOL(flooder) = {
    FB_PROTOCOL_HEADER,
    .name = "flooder",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct flood),
    .ops = &ops,
};

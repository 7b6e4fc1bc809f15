/* SPDX-License-Identifier: BSD-2-Clause */
/* A module in an attacker's hands, breaking the rules of the channel to the master in the way of a
 * client's letter. Where the attack does not end the worker, "." tells the client of the attack's
 * end. Other letters are echoed. */
#include <forkbeard/forkbeard.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FD_MAX 256
#define PASSED 8
#define LINGER_S 3600 /* longer than any test waits */

/* The kinds of messages, by the daemon's numbers. */
enum { RESCAN = 5, LOG_BROKEN = 7, WANTED = 10 };

struct packet {
    uint32_t kind, argument;
};

static int socket_option(int fd, int option)
{
    int value = -1;
    socklen_t n = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, option, &value, &n) == 0 ? value : -1;
}

/* The first socket of that kind: the channel is the first of packets. */
static int find_socket(int domain, int type)
{
    struct sockaddr_storage peer;
    socklen_t n = sizeof(peer);

    for (int fd = 0; fd < FD_MAX; fd++) {
        n = sizeof(peer);
        if (socket_option(fd, SO_DOMAIN) == domain && socket_option(fd, SO_TYPE) == type &&
            getpeername(fd, (struct sockaddr *)&peer, &n) == 0)
            return fd;
    }
    abort();
}

static void send_packet(uint32_t kind, uint32_t argument, size_t n)
{
    struct packet packet = { kind, argument };
    int channel = find_socket(AF_UNIX, SOCK_SEQPACKET);

    while (send(channel, &packet, n, MSG_NOSIGNAL) == -1 && errno == EAGAIN)
        continue;
}

/* Sends messages without pause, until the worker is killed. */
static void flood(uint32_t kind, bool counting)
{
    for (uint32_t i = 0;; i++)
        send_packet(kind, counting ? 1024 + i % 1024 : 0, 8);
}

/* Passes the client's own connection, unread by the client, so often, and closes it: the last close
 * waits for the peer. */
static void pass_sockets(int channel)
{
    static const struct linger slow = { .l_onoff = 1, .l_linger = LINGER_S };
    static char much[1 << 20];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(PASSED * sizeof(int))];
    } control = { .room = "" };
    struct packet packet = { RESCAN, 0 };
    struct iovec piece = { &packet, 8 };
    struct msghdr header = { .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control.room,
        .msg_controllen = sizeof(control.room) };
    int fd = find_socket(AF_INET, SOCK_STREAM);

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &slow, sizeof(slow));
    while (send(fd, much, sizeof(much), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        continue;
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(PASSED * sizeof(int));
    for (int i = 0; i < PASSED; i++)
        memcpy(CMSG_DATA(&control.header) + (size_t)i * sizeof(int), &fd, sizeof(int));
    sendmsg(channel, &header, MSG_NOSIGNAL);
    if (dup2(channel, fd) == -1) /* without a wait of our own */
        abort();
}

static void attack(fb_conn *conn, uint8_t letter)
{
    switch (letter) {
    case 'f':
        flood(RESCAN, false);
        break;
    case 'w':
        flood(WANTED, true);
        break;
    case 'b':
        flood(LOG_BROKEN, false);
        break;
    case 'e':
        send_packet(RESCAN, 0, 0);
        break;
    case 'd':
        pass_sockets(find_socket(AF_UNIX, SOCK_SEQPACKET));
        break;
    default:
        fb_write(conn, &letter, 1);
        return;
    }
    fb_write(conn, ".", 1);
}

static size_t offender_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    for (size_t i = 0; i < in.n; i++)
        attack(conn, in.p[i]);
    return in.n;
}

static const fb_directive directives[] = {
    { .name = "offender", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_ops ops = { .size = sizeof(fb_ops), .data = offender_data };

FB_PROTOCOL(offender) = {
    FB_PROTOCOL_HEADER,
    .name = "offender",
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
};

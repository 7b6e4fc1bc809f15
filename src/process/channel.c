/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages over a pair of sequenced-packet sockets: a packet is a message, whole or not at all. */
#include "process/channel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The part of a message that travels as bytes. */
struct wire {
    uint32_t kind, argument;
};

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

int fb_channel_open(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
}

int fb_channel_wake(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags == -1 || fcntl(fd, F_SETOWN, getpid()) == -1)
        return -1;
    return fcntl(fd, F_SETFL, flags | O_ASYNC);
}

int fb_channel_send(int fd, const struct fb_message *message)
{
    struct wire wire = { message->kind, message->argument };
    struct iovec piece = { &wire, sizeof(wire) };
    struct msghdr header = { .msg_iov = &piece, .msg_iovlen = 1 };
    union control control;

    assert(message->kind != 0 && message->fd >= -1);
    if (message->fd != -1) {
        struct cmsghdr *c;

        memset(&control, 0, sizeof(control));
        header.msg_control = &control;
        header.msg_controllen = sizeof(control.room);
        c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &message->fd, sizeof(int));
    }
    if (sendmsg(fd, &header, MSG_NOSIGNAL) != -1)
        return 0;
    if (errno == ECONNRESET) /* the receiver has gone with messages unread */
        errno = EPIPE;
    return -1;
}

enum fb_channel_status fb_channel_receive(int fd, struct fb_message *message)
{
    struct wire wire;
    struct iovec piece = { &wire, sizeof(wire) };
    union control control;
    struct msghdr header = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control.room),
    };
    struct cmsghdr *c;
    ssize_t n;

    do
        n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
    while (n == -1 && errno == EINTR);
    if (n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return FB_CHANNEL_AGAIN;
    if (n != sizeof(wire))
        return FB_CHANNEL_CLOSED;

    *message = (struct fb_message) { .kind = wire.kind, .argument = wire.argument, .fd = -1 };
    c = CMSG_FIRSTHDR(&header);
    if (c != NULL && c->cmsg_type == SCM_RIGHTS)
        memcpy(&message->fd, CMSG_DATA(c), sizeof(int));
    return FB_CHANNEL_DONE;
}

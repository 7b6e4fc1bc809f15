/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends and receives channel messages over a pair of SOCK_SEQPACKET sockets: one packet is one
 * message, which arrives whole or not at all. Neither call ever blocks. */
#include "process/channel.h"

#include "process/fd_passing.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* The part of a message that travels as bytes. */
struct wire {
    uint32_t kind, argument;
};

int channel_open(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
}

int channel_wake(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags == -1 || fcntl(fd, F_SETOWN, getpid()) == -1)
        return -1;
    return fcntl(fd, F_SETFL, flags | O_ASYNC);
}

int channel_send(int fd, const struct channel_message *message)
{
    struct wire wire = { message->kind, message->argument };

    assert(message->kind != 0 && message->fd >= -1);
    return fd_send(fd, &wire, sizeof(wire), message->fd) == -1 ? -1 : 0;
}

enum channel_status channel_receive(int fd, struct channel_message *message)
{
    struct wire wire;
    int passed;
    ssize_t n;

    do
        n = fd_receive(fd, &wire, sizeof(wire), &passed);
    while (n == -1 && errno == EINTR);
    if (n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return CHANNEL_AGAIN;
    if (n != sizeof(wire)) {
        if (passed != -1)
            close(passed);
        return CHANNEL_CLOSED;
    }
    *message =
        (struct channel_message) { .kind = wire.kind, .argument = wire.argument, .fd = passed };
    return CHANNEL_DONE;
}

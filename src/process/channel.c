/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends and receives channel messages over a pair of SOCK_SEQPACKET sockets: one packet is one
 * message, which arrives whole or not at all. Neither call ever blocks. */
#include "process/channel.h"

#include "os/descriptor.h"
#include "os/sockets.h"
#include "process/fd_passing.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>

/* The part of a message that travels as bytes. */
struct wire {
    uint32_t kind, argument;
};

static int open_pair(int ends[2])
{
    return descriptor_socketpair(AF_UNIX, SOCK_SEQPACKET, O_NONBLOCK, ends);
}

int channel_open(int ends[2])
{
    if (open_pair(ends) == -1)
        return -1;
    os_rights_refuse(ends[0]);
    return 0;
}

int channel_open_inbox(int ends[2])
{
    if (open_pair(ends) == -1)
        return -1;
    os_rights_refuse(ends[0]);
    os_rights_refuse(ends[1]);
    return 0;
}

int channel_send(int fd, const struct channel_message *message)
{
    struct wire wire = { message->kind, message->argument };

    assert(message->kind != 0 && message->fd >= -1);
    return fd_send(fd, &wire, sizeof(wire), message->fd) == -1 ? -1 : 0;
}

enum channel_status channel_receive(int fd, struct channel_message *message)
{
    struct {
        struct wire wire;
        uint8_t excess; /* filled by a packet that is too long */
    } room;
    int passed;
    ssize_t n;

    do /* a sender that has closed with unread messages is reported before what it has sent */
        n = fd_receive(fd, &room, offsetof(typeof(room), excess) + 1, &passed);
    while (n == -1 && (errno == EINTR || errno == ECONNRESET));
    if (n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return CHANNEL_AGAIN;
    if (n == sizeof(room.wire)) {
        *message = (struct channel_message) {
            .kind = room.wire.kind, .argument = room.wire.argument, .fd = passed
        };
        return CHANNEL_DONE;
    }
    if (passed != -1)
        descriptor_discard(passed);
    return n == -1 || (n == 0 && os_socket_is_closed(fd)) ? CHANNEL_CLOSED : CHANNEL_BROKEN;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends and receives channel messages over a pair of SOCK_SEQPACKET sockets: one packet is one
 * whole message. Never blocks: an end sends what there is room for, and the rest later, by a timer.
 * Packets of an untrusted end are messages without a descriptor, at a bounded rate; the owner
 * checks the content. */
#include "channel/channel.h"

#include "base/compiler.h"
#include "channel/fd_passing.h"
#include "os/descriptor.h"
#include "os/sockets.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>

/* How long until a full channel is tried again: the other end reads everything, unless stopped. */
#define RETRY_MS 100

/* Workers keep to half of this (worker/siblings.c, worker/accept.c, CHANNEL_END_LIMITED_MS). */
static const struct token_rate message_rate = { .burst = 4096, .per_second = 1000 };

/* The part of a message that travels as bytes. */
struct wire {
    uint32_t kind, argument;
};

int channel_open(int ends[2])
{
    if (descriptor_socketpair(AF_UNIX, SOCK_SEQPACKET, O_NONBLOCK, ends) == -1)
        return -1;
    os_rights_refuse(ends[0]);
    return 0;
}

int channel_open_inbox(int ends[2])
{
    if (channel_open(ends) == -1)
        return -1;
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

    do /* a sender's close with unread messages is reported before its messages */
        n = fd_receive(fd, &room, offsetof(typeof(room), excess) + 1, &passed, NULL);
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

bool channel_end_try(struct channel_end *end, const struct channel_message *message)
{
    if (end->fd == -1 || channel_send(end->fd, message) == 0)
        return true;
    switch (errno) {
    case EAGAIN:
    case EINTR:
    case ENOBUFS:
    case ENOMEM:
    case ETOOMANYREFS: /* descriptors passed by other processes, and not received */
        return false;
    case EPIPE: /* the other end has gone, as told to the owner elsewhere */
        return true;
    default:
        end->ops->failed(end, errno);
        return true;
    }
}

/* Sends waiting messages of these kinds; false when the channel is full. */
static bool send_unsent(struct channel_end *end, uint32_t kinds)
{
    for (uint32_t kind = 1; kind < 32 && end->unsent >> kind != 0; kind++) {
        struct channel_message message = { .kind = kind, .fd = -1 };

        if ((end->unsent & kinds & 1u << kind) == 0)
            continue;
        if (!channel_end_try(end, &message))
            return false;
        end->unsent &= ~(1u << kind);
    }
    return true;
}

/* Sends all that may be sent now; sets the timer for the rest. */
static void send_due(struct channel_end *end)
{
    uint32_t limited = end->unsent & end->ops->limited;
    uint64_t now = end->timers->clock->mono_ms, due = end->limited_ms + CHANNEL_END_LIMITED_MS;
    bool too_soon = end->limited_ms != 0 && now < due;
    bool sent = (end->unsent & end->ops->first) == 0 || send_unsent(end, end->ops->first);

    sent = sent && send_unsent(end, too_soon ? ~limited : ~0u);
    if (sent && end->more)
        end->more = !end->ops->send_more(end);
    if (limited != 0 && !too_soon && (end->unsent & limited) == 0)
        end->limited_ms = now;
    if (!sent || end->more) {
        if (!timer_is_set(&end->retry))
            timers_arm(end->timers, &end->retry, RETRY_MS);
    } else if (end->unsent != 0) {
        timers_arm_at(end->timers, &end->retry, due);
    }
}

static void retry_expired(struct loop *loop, struct timer *timer)
{
    (void)loop;
    send_due(container_of(timer, struct channel_end, retry));
}

void channel_end_open(
    struct channel_end *end, int fd, const struct channel_end_ops *ops, struct timers *timers)
{
    assert(fd >= 0 && timers != NULL);
    assert(ops->handle != NULL && ops->failed != NULL);
    *end = (struct channel_end) {
        .fd = fd, .ops = ops, .timers = timers, .retry = { .expired = retry_expired }
    };
}

void channel_end_close(struct channel_end *end)
{
    if (end->fd == -1)
        return;
    timers_disarm(end->timers, &end->retry);
    *end = (struct channel_end) { .fd = -1 };
}

void channel_end_send(struct channel_end *end, enum channel_message_kind kind)
{
    assert(kind > 0 && kind < 32);
    if (end->fd == -1)
        return;
    end->unsent |= 1u << kind;
    send_due(end);
}

void channel_end_send_more(struct channel_end *end)
{
    if (end->fd == -1)
        return;
    end->more = true;
    send_due(end);
}

void channel_end_retry(struct channel_end *end)
{
    assert(end->fd != -1);
    end->more = true;
    if (!timer_is_set(&end->retry))
        timers_arm(end->timers, &end->retry, RETRY_MS);
}

void channel_end_flush(struct channel_end *end)
{
    if (end->fd != -1)
        send_unsent(end, ~0u);
}

bool channel_end_is_unsent(const struct channel_end *end, enum channel_message_kind kind)
{
    assert(kind > 0 && kind < 32);
    return (end->unsent >> kind & 1) != 0;
}

static const char *check_message(struct channel_end *end, const struct channel_message *message)
{
    if (end->ops->is_trusted)
        return NULL;
    if (message->fd != -1) {
        descriptor_discard(message->fd);
        return "a descriptor was passed";
    }
    if (!token_bucket_take(&end->received, &message_rate, end->timers->clock->mono_ms))
        return "more than 1000 messages a second";
    return NULL;
}

void channel_end_forgive(struct channel_end *end)
{
    assert(end->fd != -1);
    if (end->received.tokens < message_rate.burst)
        end->received.tokens++;
}

enum channel_status channel_end_receive(struct channel_end *end, unsigned most, const char **rule)
{
    assert(most > 0);
    *rule = NULL;
    for (; most > 0; most--) {
        struct channel_message message;
        enum channel_status status = channel_receive(end->fd, &message);

        if (status == CHANNEL_AGAIN || status == CHANNEL_CLOSED)
            return status;
        *rule =
            status == CHANNEL_BROKEN ? "a message of a wrong length" : check_message(end, &message);
        if (*rule == NULL)
            *rule = end->ops->handle(end, &message);
        if (*rule != NULL)
            return CHANNEL_BROKEN;
    }
    return CHANNEL_DONE;
}

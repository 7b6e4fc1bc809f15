/* SPDX-License-Identifier: BSD-2-Clause */
/* The master of a test with several workers: hands over inboxes, tells who has gone, and wakes the
 * worker whose bell has rung, all by the channels of the daemon. Real descriptors, at which nothing
 * happens in the simulation, are looked at here between the turns. A single process has none. */
#include "kit/kit.h"
#include "worker/messages_private.h"

#include <poll.h>
#include <unistd.h>

static bool is_readable(int fd)
{
    struct pollfd entry = { .fd = fd, .events = POLLIN };

    return fd != -1 && poll(&entry, 1, 0) == 1;
}

static void order(struct kit_worker *own, enum channel_message_kind kind, uint32_t argument, int fd)
{
    struct channel_message message = { .kind = kind, .argument = argument, .fd = fd };

    if (channel_send(own->channel, &message) == -1)
        kit_misused("worker %u does not read its channel", own->number);
}

/* Makes the socket that the worker receives from. */
static void open_inbox(struct kit_worker *own)
{
    int ends[2];

    if (own->inbox != -1)
        return;
    if (channel_open_inbox(ends) == -1)
        kit_misused("no descriptors for messages");
    order(own, MESSAGE_INBOX, 0, ends[0]);
    close(ends[0]);
    own->inbox = ends[1];
}

/* Makes the beginning of the way of messages to another worker, and hands it over as that worker's
 * inbox. */
static void open_way(struct kit_worker *own, struct kit_worker *to, uint32_t incarnation)
{
    struct kit_way *way = kit_way(own->test, own->number, to->number);
    int ends[2];

    open_inbox(to);
    if (channel_open_inbox(ends) == -1)
        kit_misused("no descriptors for messages");
    if (way->fd != -1)
        close(way->fd);
    way->fd = ends[0];
    order(own, MESSAGE_INBOX_OF_PEER, incarnation, ends[1]);
    close(ends[1]);
}

static void give_inbox(struct kit_worker *own, uint32_t incarnation)
{
    struct kit_worker *to;

    KIT_FOREACH_ALIVE(to, own->test)
    if (to != own && slot_incarnation(to->heritage.slot) == incarnation) {
        open_way(own, to, incarnation);
        return;
    }
    order(own, MESSAGE_PEER_GONE, incarnation, -1);
}

static void hear_worker(struct kit_worker *own)
{
    struct channel_message message;

    while (channel_receive(own->channel, &message) == CHANNEL_DONE) {
        assert(message.fd == -1);
        if (message.kind == MESSAGE_INBOX_WANTED)
            give_inbox(own, message.argument);
        if (message.kind == MESSAGE_INBOX_LOST && own->inbox != -1) {
            close(own->inbox);
            own->inbox = -1;
        }
    }
}

void kit_master_tell_gone(fb_test *test, struct kit_worker *gone)
{
    struct kit_worker *own;

    KIT_FOREACH_ALIVE(own, test)
    if (own != gone && test->several)
        order(own, MESSAGE_PEER_GONE, slot_incarnation(gone->heritage.slot), -1);
}

static struct source *inbox_of(const struct kit_worker *own)
{
    return own->worker.messages != NULL ? own->worker.messages->inbox : NULL;
}

/* Whether an event of a real descriptor is to be reported. It was, while its handler has not found
 * the descriptor empty. */
static bool has_event(const struct source *source)
{
    return source != NULL && source->events[EVENT_READ].armed &&
           !source->events[EVENT_READ].ready && is_readable(source->fd);
}

static bool report(struct kit_worker *own, struct source *source)
{
    if (!has_event(source))
        return false;
    loop_report(kit_loop_of(own), source, EVENT_READ);
    return true;
}

bool kit_master_serve(fb_test *test)
{
    struct kit_worker *own;
    bool any;

    if (!test->several)
        return false;
    KIT_FOREACH_ALIVE(own, test)
    hear_worker(own);
    any = kit_ways_carry(test);
    KIT_FOREACH_ALIVE(own, test)
    {
        any = report(own, own->worker.channel) || any;
        any = report(own, inbox_of(own)) || any;
        if (report(own, own->worker.accept.bell)) {
            bells_quiet(&test->bells, own->number);
            any = true;
        }
    }
    return any;
}

bool kit_master_is_wanted(fb_test *test)
{
    struct kit_worker *own;

    if (!test->several)
        return false;
    KIT_FOREACH_ALIVE(own, test)
    if (is_readable(own->channel) || has_event(own->worker.channel) || has_event(inbox_of(own)) ||
        has_event(own->worker.accept.bell))
        return true;
    return kit_ways_are_busy(test);
}

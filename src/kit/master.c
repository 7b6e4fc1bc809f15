/* SPDX-License-Identifier: BSD-2-Clause */
/* The master of a test with several workers: hands over inboxes, reports gone workers, and wakes a
 * worker after a ring of the bell, all by the channels of the daemon. Real descriptors, idle in the
 * simulation, are looked at here between the turns. A single process has no such master.
 *
 * Each packet between workers is taken from the sender's socket, and put into the receiver's inbox
 * at once, later, or never. A lost message is answered like the daemon answers a message not
 * received before a worker's death. Packets never overtake on a way. */
#include "kit/kit.h"
#include "worker/messages_private.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A way that is late at times is closed at one visit in three. */
#define LATE_OF 3

static void send_order(
    struct kit_worker *own, enum channel_message_kind kind, uint32_t argument, int fd)
{
    struct channel_message message = { .kind = kind, .argument = argument, .fd = fd };

    if (channel_send(own->channel, &message) == -1)
        kit_misused("worker %u does not read its channel", own->number);
}

/* Makes the worker's receiving socket. */
static void open_inbox(struct kit_worker *own)
{
    int ends[2];

    if (own->inbox != -1)
        return;
    if (channel_open_inbox(ends) == -1)
        kit_misused("no descriptors for messages");
    send_order(own, MESSAGE_INBOX, 0, ends[0]);
    close(ends[0]);
    own->inbox = ends[1];
}

/* Makes the sending end of the way to `to`, and hands the end over as the inbox of `to`. */
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
    send_order(own, MESSAGE_SIBLING_INBOX, incarnation, ends[1]);
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
    send_order(own, MESSAGE_SIBLING_GONE, incarnation, -1);
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
        send_order(own, MESSAGE_SIBLING_GONE, slot_incarnation(gone->heritage.slot), -1);
}

/* Reports an event of a real descriptor, unless the handler has still to find the descriptor empty;
 * returns whether an event was reported. */
static bool report_readable(struct kit_worker *own, struct source *source)
{
    struct pollfd entry = { .events = POLLIN };

    if (source == NULL || !source->events[EVENT_READ].armed || source->events[EVENT_READ].ready)
        return false;
    entry.fd = source->fd;
    if (poll(&entry, 1, 0) != 1)
        return false;
    loop_report(kit_loop_of(own), source, EVENT_READ);
    return true;
}

/* ---- Messages between workers ---- */

static struct message_head head_of(const struct kit_packet *packet)
{
    struct message_head head;

    assert(packet->n >= sizeof(head));
    memcpy(&head, packet->bytes, sizeof(head));
    return head;
}

static struct kit_packet *add_packet(struct kit_way *way, const void *p, size_t n)
{
    struct kit_packet *packet = kit_alloc(sizeof(*packet) + n);

    packet->n = n;
    memcpy(packet->bytes, p, n);
    STAILQ_INSERT_TAIL(&way->packets, packet, link);
    return packet;
}

static void drop_first(struct kit_way *way)
{
    struct kit_packet *packet = STAILQ_FIRST(&way->packets);

    STAILQ_REMOVE_HEAD(&way->packets, link);
    free(packet);
}

/* Takes what the sender has sent. */
static void take_packets(struct kit_way *way)
{
    struct {
        struct message_head head;
        uint8_t bytes[FB_MESSAGE_MAX];
    } packet;
    ssize_t n;

    if (way->fd == -1)
        return;
    while ((n = recv(way->fd, &packet, sizeof(packet), MSG_DONTWAIT)) > 0)
        if ((size_t)n >= sizeof(packet.head))
            add_packet(way, &packet, (size_t)n);
}

/* Loses the first packet: the sender gets the answer "unknown receiver". A lost answer becomes an
 * "unknown" answer. Greetings are not lost, because no worker lives without. */
static bool lose_first(fb_test *test, unsigned from, unsigned to)
{
    struct kit_way *way = kit_way(test, from, to);
    struct message_head head = head_of(STAILQ_FIRST(&way->packets));
    struct message_head answer = {
        .number = head.number, .from = head.to, .to = head.from, .outcome = FB_MESSAGE_UNKNOWN
    };

    if (head.outcome == MESSAGE_IS_GREETING)
        return false;
    if (head.outcome != MESSAGE_IS_SENT) {
        head.outcome = FB_MESSAGE_UNKNOWN;
        memcpy(STAILQ_FIRST(&way->packets)->bytes, &head, sizeof(head));
        return false;
    }
    drop_first(way);
    add_packet(kit_way(test, to, from), &answer, sizeof(answer));
    return true;
}

/* Puts the first packet into the receiver's inbox; false when that is full, or not there yet. */
static bool deliver_first(fb_test *test, unsigned from, unsigned to)
{
    struct kit_way *way = kit_way(test, from, to);
    struct kit_packet *packet = STAILQ_FIRST(&way->packets);
    int inbox = test->workers[to].inbox;

    if (inbox == -1)
        return false;
    if (send(inbox, packet->bytes, packet->n, MSG_DONTWAIT | MSG_NOSIGNAL) == -1 &&
        (errno == EAGAIN || errno == ENOBUFS))
        return false;
    drop_first(way);
    return true;
}

/* Counts the first packet, if a message, and returns whether the packet is to be lost. */
static bool is_to_be_lost(fb_test *test, const struct kit_way *way)
{
    bool lost = head_of(STAILQ_FIRST(&way->packets)).outcome == MESSAGE_IS_SENT &&
                ++test->message_n == test->loss_at;

    test->loss_n += lost;
    return lost;
}

/* Carries packets on a way; whether any has reached the receiver, or will by itself. */
static bool carry_way(fb_test *test, unsigned from, unsigned to)
{
    struct kit_way *way = kit_way(test, from, to);
    bool any = false;

    take_packets(way);
    while (!STAILQ_EMPTY(&way->packets)) {
        if (way->how == FB_TEST_LATE)
            break;
        if (test->dawdles && sim_draw(&test->way_random, LATE_OF) == 0)
            return true;
        if ((way->how == FB_TEST_LOST || is_to_be_lost(test, way)) && lose_first(test, from, to))
            continue;
        if (!deliver_first(test, from, to))
            break;
        any = true;
    }
    return any;
}

/* Makes the sender refuse messages for the receiver, or no longer. */
static void apply_refusal(struct kit_worker *own, struct kit_worker *to)
{
    bool busy = kit_way(own->test, own->number, to->number)->how == FB_TEST_BUSY;
    struct sibling *sibling;

    if (own->worker.messages == NULL || !to->alive)
        return;
    TAILQ_FOREACH (sibling, &own->worker.messages->siblings, link)
        if (sibling->incarnation == slot_incarnation(to->heritage.slot))
            sibling->refuses =
                busy ? sibling->refuses | SIBLING_IS_HELD : sibling->refuses & ~SIBLING_IS_HELD;
}

/* Carries messages; whether any has reached a receiver, or will by itself. */
static bool carry_ways(fb_test *test)
{
    struct kit_worker *own;
    bool any = false;

    KIT_FOREACH_ALIVE(own, test)
    for (unsigned to = 0; to < test->worker_n; to++) {
        any = carry_way(test, own->number, to) || any;
        apply_refusal(own, &test->workers[to]);
    }
    return any;
}

void kit_ways_flush(fb_test *test, struct kit_worker *from)
{
    for (unsigned to = 0; to < test->worker_n; to++)
        carry_way(test, from->number, to);
}

static void clear_way(struct kit_way *way)
{
    while (!STAILQ_EMPTY(&way->packets))
        drop_first(way);
    if (way->fd != -1)
        close(way->fd);
    way->fd = -1;
}

void kit_ways_clear(fb_test *test, struct kit_worker *own)
{
    for (unsigned i = 0; i < test->worker_n; i++) {
        clear_way(kit_way(test, own->number, i));
        clear_way(kit_way(test, i, own->number));
    }
}

/* ---- Between the turns ---- */

bool kit_master_serve(fb_test *test)
{
    struct kit_worker *own;
    bool any;

    if (!test->several)
        return false;
    KIT_FOREACH_ALIVE(own, test)
    hear_worker(own);
    any = carry_ways(test);
    KIT_FOREACH_ALIVE(own, test)
    {
        any = report_readable(own, own->worker.channel) || any;
        if (own->worker.messages != NULL)
            any = report_readable(own, own->worker.messages->inbox) || any;
        if (report_readable(own, own->worker.accept.bell)) {
            bells_quiet(&test->bells, own->number);
            any = true;
        }
    }
    return any;
}

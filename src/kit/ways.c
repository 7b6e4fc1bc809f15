/* SPDX-License-Identifier: BSD-2-Clause */
/* The ways of messages between workers. Each packet that a worker sends is taken from its socket,
 * and put into the receiver's inbox at once, later, or never. What a test loses is answered, as the
 * daemon answers what a worker has not received before its death. Packets of one way never overtake
 * each other. */
#include "kit/kit.h"
#include "worker/messages_private.h"
#include "worker/references.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A way that is late at times is found closed at one visit in three. */
#define LATE_OF 3

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

/* Loses the first packet: its sender is answered that the receiver is not known. An answer itself
 * becomes that answer. Greetings are not lost, because no worker lives without. */
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

/* Counts the first packet, if it is a message, and says whether it is the one to be lost. */
static bool is_to_be_lost(fb_test *test, const struct kit_way *way)
{
    if (head_of(STAILQ_FIRST(&way->packets)).outcome != MESSAGE_IS_SENT ||
        ++test->message_n != test->loss_at)
        return false;
    test->loss_n++;
    return true;
}

/* Carries what is on a way; whether any has come to its receiver. */
static bool carry(fb_test *test, unsigned from, unsigned to)
{
    struct kit_way *way = kit_way(test, from, to);
    bool any = false;

    take_packets(way);
    while (!STAILQ_EMPTY(&way->packets)) {
        if (way->how == FB_TEST_LATE ||
            (test->dawdles && kit_random(&test->way_random, LATE_OF) == 0))
            break;
        if ((way->how == FB_TEST_LOST || is_to_be_lost(test, way)) && lose_first(test, from, to))
            continue;
        if (!deliver_first(test, from, to))
            break;
        any = true;
    }
    return any;
}

/* Makes the sender refuse messages for this receiver, or take them again. */
static void apply_refusal(struct kit_worker *own, struct kit_worker *to)
{
    bool busy = kit_way(own->test, own->number, to->number)->how == FB_TEST_BUSY;
    struct peer *peer;

    if (own->worker.messages == NULL || !to->alive)
        return;
    TAILQ_FOREACH (peer, &own->worker.messages->peers, link)
        if (peer->incarnation == slot_incarnation(to->heritage.slot))
            peer->refuses = busy ? peer->refuses | PEER_IS_HELD : peer->refuses & ~PEER_IS_HELD;
}

bool kit_ways_carry(fb_test *test)
{
    struct kit_worker *own;
    bool any = false;

    KIT_FOREACH_ALIVE(own, test)
    for (unsigned to = 0; to < test->worker_n; to++) {
        any = carry(test, own->number, to) || any;
        apply_refusal(own, &test->workers[to]);
    }
    return any;
}

/* Whether the worker's inbox takes a packet. */
static bool takes_packets(const struct kit_worker *own)
{
    struct pollfd entry = { .fd = own->inbox, .events = POLLOUT };

    return own->inbox != -1 && poll(&entry, 1, 0) == 1;
}

static bool has_packets(const struct kit_way *way)
{
    char byte;

    return !STAILQ_EMPTY(&way->packets) ||
           (way->fd != -1 && recv(way->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0);
}

bool kit_ways_are_busy(fb_test *test)
{
    for (unsigned i = 0; i < test->worker_n * test->worker_n; i++)
        if (test->ways[i].how != FB_TEST_LATE && has_packets(&test->ways[i]) &&
            takes_packets(&test->workers[i % test->worker_n]))
            return true;
    return false;
}

void kit_ways_flush(fb_test *test, struct kit_worker *from)
{
    for (unsigned to = 0; to < test->worker_n; to++)
        carry(test, from->number, to);
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

static void set_ways(fb_test *test, unsigned from, unsigned to, fb_test_way how)
{
    for (unsigned i = 0; i < test->worker_n; i++)
        for (unsigned j = 0; j < test->worker_n; j++)
            if ((from == FB_TEST_EVERY || from == i) && (to == FB_TEST_EVERY || to == j))
                kit_way(test, i, j)->how = how;
}

void fb_test_link(fb_test *test, unsigned from, unsigned to, fb_test_way how)
{
    CHECK_KIND(test, KIT_TEST);
    if ((from != FB_TEST_EVERY && from >= test->worker_n) ||
        (to != FB_TEST_EVERY && to >= test->worker_n))
        kit_misused("fb_test_link(): there is no worker %u, or no worker %u", from, to);
    fb_test_run(test); /* messages of before go the way that there was */
    set_ways(test, from, to, how);
    kit_master_serve(test);
}

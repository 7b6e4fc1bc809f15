/* SPDX-License-Identifier: BSD-2-Clause */
/* The numbers of handshakes, and the replies to owners, for links of both kinds. A late reply is
 * known by the generation in the number. Invariant: a place is in the list of free places exactly
 * while no owner has the place, and an owner has a number exactly while having a place. */
#include "tls/link_private.h"

#include "base/compiler.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* Places that are kept free for new handshakes. */
#define PLACES_KEPT (TLS_HANDSHAKES_MOST / 8)
/* Least interval in ms between lines about too many handshakes. */
#define CROWD_SAID_MS 60000
/* Handshakes that await tickets, and how long, in ms. */
#define AWAITS_MOST 64
#define AWAITS_MS 10000

static void forget_expired(struct loop *loop, struct timer *timer);

void tls_link_init(struct tls_link *link, struct loop *loop, const struct tls_link_ops *ops)
{
    link->ops = ops;
    link->loop = loop;
    TAILQ_INIT(&link->awaiting);
    link->forgets.expired = forget_expired;
    for (uint32_t i = 0; i < TLS_HANDSHAKES_MOST; i++)
        link->places[i] = (struct link_place) { .number = i, .next = i + 1 };
}

void tls_link_post(struct tls_link *link)
{
    assert(link->source != NULL);
    loop_post_soon(link->loop, &link->source->events[EVENT_READ]);
}

void tls_link_break(struct tls_link *link)
{
    link->broken = true;
    if (link->source != NULL)
        tls_link_post(link);
}

struct link_place *tls_link_find(struct tls_link *link, uint32_t number)
{
    struct link_place *place = &link->places[TLS_PLACE(number)];

    assert(TLS_PLACE(number) < TLS_HANDSHAKES_MOST);
    return place->phase != LINK_FREE && place->number == number ? place : NULL;
}

/* Returns the place of an owner's handshake. */
static struct link_place *place_of_pending(struct tls_link *link, const struct tls_pending *pending)
{
    struct link_place *place = tls_link_find(link, pending->number);

    assert(place != NULL && place->pending == pending);
    return place;
}

static void free_place(struct tls_link *link, struct link_place *place)
{
    assert(place->phase != LINK_FREE && link->n > 0);
    if (place->phase == LINK_WAITING)
        link->waiting--;
    if (place->phase == LINK_AWAITS) {
        TAILQ_REMOVE(&link->awaiting, place, awaits);
        link->awaits_n--;
    } else {
        place->pending->number = 0;
        place->pending = NULL;
    }
    place->phase = LINK_FREE;
    place->next = link->free;
    link->free = TLS_PLACE(place->number);
    link->n--;
}

/* Warns of many handshakes, once in a while; *said_ms is the time of the last such line. */
static COLD void log_crowd(struct tls_link *link, uint64_t *said_ms, const char *what)
{
    uint64_t now = link->loop->clock.mono_ms;

    if (*said_ms != 0 && now - *said_ms < CROWD_SAID_MS)
        return;
    *said_ms = now;
    log_write(link->loop->log, LEVEL_WARN, 0, "%s, because %u are under way", what, link->n);
}

int tls_link_begin(
    struct tls_link *link, struct tls_pending *pending, const struct tls_start *start)
{
    struct link_place *place;

    assert(pending->number == 0 && pending->replied != NULL);
    assert(start->name.n <= TLS_NAME_MOST && (start->name.n == 0 || start->role == TLS_CLIENT));
    assert(start->paths.n <= TLS_PATHS_MOST);
    if (link->free == TLS_HANDSHAKES_MOST)
        log_crowd(link, &link->refused_ms, "new handshakes are refused");
    if (link->broken || link->free == TLS_HANDSHAKES_MOST)
        return -1;
    place = &link->places[link->free];
    assert(place->phase == LINK_FREE && TLS_PLACE(place->number) == link->free);
    link->free = place->next;
    link->n++;
    place->number += 1u << TLS_PLACE_BITS;
    if (place->number >> TLS_PLACE_BITS == 0) /* no generation is 0 */
        place->number += 1u << TLS_PLACE_BITS;
    place->phase = LINK_BEGUN;
    place->pending = pending;
    place->start = *start;
    place->begun_ms = link->loop->clock.mono_ms;
    if (link->n > TLS_HANDSHAKES_MOST - PLACES_KEPT && link->source != NULL)
        tls_link_post(link);
    pending->number = place->number;
    return 0;
}

const char *tls_link_refusal(const struct tls_link *link)
{
    return link->broken ? "the link to the keeper process has failed"
                        : "too many handshakes are under way";
}

void tls_link_feed(struct tls_link *link, struct tls_pending *pending, fb_bytes in)
{
    struct link_place *place = place_of_pending(link, pending);
    struct tls_request request = {
        .kind = place->phase == LINK_BEGUN ? TLS_BEGIN : TLS_FEED,
        .number = place->number,
        .start = place->start,
        .in = in,
    };

    assert(place->phase == LINK_BEGUN || place->phase == LINK_REPLIED);
    assert(in.n <= TLS_FEED_MOST);
    assert((in.n == 0) == (place->phase == LINK_BEGUN && place->start.role == TLS_CLIENT));
    place->phase = LINK_WAITING;
    link->waiting++;
    place->given = (uint32_t)in.n;
    if (!link->broken)
        link->ops->feed(link, &request);
    place->start.name = place->start.paths = (fb_bytes) { 0 };
}

bool tls_link_takes(const struct tls_link *link, const struct tls_session *session)
{
    const struct tls_suite *suite = tls_suite_find(session->suite);

    return suite != NULL && suite->version == session->version &&
           (suite->cipher == CIPHER_PLAIN) == link->plain;
}

/* Tells the engine, if it can be told, that a handshake is forgotten. */
static void cancel_number(struct tls_link *link, uint32_t number)
{
    if (!link->broken)
        link->ops->cancel(link, number);
}

void tls_link_cancel(struct tls_link *link, struct tls_pending *pending)
{
    struct link_place *place = place_of_pending(link, pending);
    uint32_t number = place->number;
    bool is_known = place->phase != LINK_BEGUN;

    free_place(link, place);
    if (is_known)
        cancel_number(link, number);
}

/* Forgets a handshake that awaits tickets, in the engine as well. */
static void forget_place(struct tls_link *link, struct link_place *place)
{
    uint32_t number = place->number;

    assert(place->phase == LINK_AWAITS);
    free_place(link, place);
    cancel_number(link, number);
}

static void forget_expired(struct loop *loop, struct timer *timer)
{
    struct tls_link *link = container_of(timer, struct tls_link, forgets);
    struct link_place *place;

    while ((place = TAILQ_FIRST(&link->awaiting)) != NULL &&
           loop->clock.mono_ms - place->begun_ms >= AWAITS_MS)
        forget_place(link, place);
    if (place != NULL)
        timer_set(loop, timer, place->begun_ms + AWAITS_MS - loop->clock.mono_ms);
}

/* Lets a handshake that is done wait for tickets, without its owner, who is told the number. */
static void await_tickets(struct tls_link *link, struct link_place *place, struct tls_reply *reply)
{
    assert(place->phase == LINK_WAITING && place->start.role == TLS_CLIENT);
    link->waiting--;
    reply->session.awaits_tickets = place->number;
    place->pending->number = 0;
    place->pending = NULL;
    place->phase = LINK_AWAITS;
    place->begun_ms = link->loop->clock.mono_ms;
    TAILQ_INSERT_TAIL(&link->awaiting, place, awaits);
    if (link->awaits_n++ == AWAITS_MOST)
        forget_place(link, TAILQ_FIRST(&link->awaiting));
    if (!timer_is_set(&link->forgets))
        timer_set(link->loop, &link->forgets, AWAITS_MS);
}

bool tls_link_ticket(struct tls_link *link, uint32_t number, fb_bytes record)
{
    const struct tls_request request = { .kind = TLS_TICKET, .number = number, .in = record };
    struct link_place *place = tls_link_find(link, number);

    assert(record.n > 0);
    if (place == NULL || place->phase != LINK_AWAITS)
        return false;
    if (record.n <= TLS_FEED_MOST && !link->broken && link->ops->ticket(link, &request))
        return true;
    forget_place(link, place);
    return false;
}

void tls_link_forget(struct tls_link *link, uint32_t number)
{
    struct link_place *place = number != 0 ? tls_link_find(link, number) : NULL;

    if (place != NULL && place->phase == LINK_AWAITS)
        forget_place(link, place);
}

void tls_link_reply(
    struct tls_link *link, struct link_place *place, enum tls_step step, struct tls_reply *reply)
{
    struct tls_pending *pending = place->pending;

    assert(place->phase == LINK_WAITING || step == TLS_FAILED);
    if (step == TLS_MORE) {
        place->phase = LINK_REPLIED;
        link->waiting--;
    } else if (step == TLS_DONE && reply->session.awaits_tickets != 0) {
        await_tickets(link, place, reply);
    } else {
        free_place(link, place);
    }
    pending->replied(pending, step, reply);
}

/* Returns the oldest handshake that waits for its peer; NULL: none does. */
static struct link_place *find_oldest_place(struct tls_link *link)
{
    struct link_place *oldest = NULL;

    for (uint32_t i = 0; i < TLS_HANDSHAKES_MOST; i++) {
        struct link_place *place = &link->places[i];

        if (place->phase == LINK_REPLIED && (oldest == NULL || place->begun_ms < oldest->begun_ms))
            oldest = place;
    }
    return oldest;
}

void tls_link_shed(struct tls_link *link)
{
    struct link_place *place;

    while (link->n > TLS_HANDSHAKES_MOST - PLACES_KEPT && link->awaits_n > 0)
        forget_place(link, TAILQ_FIRST(&link->awaiting));
    while (
        link->n > TLS_HANDSHAKES_MOST - PLACES_KEPT && (place = find_oldest_place(link)) != NULL) {
        struct tls_reply reply = { .local = true, .text = "too many handshakes are under way" };

        log_crowd(link, &link->shed_ms, "handshakes of slow clients are given up");
        cancel_number(link, place->number); /* before the place can be used again */
        tls_link_reply(link, place, TLS_FAILED, &reply);
    }
}

void tls_link_fail_all(struct tls_link *link, const char *text)
{
    for (uint32_t i = 0; i < TLS_HANDSHAKES_MOST && link->n > 0; i++) {
        struct tls_reply reply = { .local = true };

        /* an engine does not know a handshake without bytes, and the next one will do */
        if (link->places[i].phase <= LINK_BEGUN)
            continue;
        if (link->places[i].phase == LINK_AWAITS) {
            free_place(link, &link->places[i]);
            continue;
        }
        snprintf(reply.text, sizeof(reply.text), "%s", text);
        tls_link_reply(link, &link->places[i], TLS_FAILED, &reply);
    }
}

void tls_link_connect(struct tls_link *link, int fd)
{
    assert(fd >= 0 && link->ops->connect != NULL);
    link->ops->connect(link, fd);
}

void tls_link_destroy(struct tls_link *link)
{
    if (link == NULL)
        return;
    while (link->awaits_n > 0)
        forget_place(link, TAILQ_FIRST(&link->awaiting));
    timer_del(link->loop, &link->forgets);
    assert(link->n == 0); /* the owners have cancelled their handshakes */
    link->ops->destroy(link);
}

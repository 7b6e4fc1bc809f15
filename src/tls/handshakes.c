/* SPDX-License-Identifier: BSD-2-Clause */
/* A table by the place of a number, and the memory of one reply, whose secrets are overwritten
 * before the next request, and at the end. */
#include "tls/handshakes.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct handshake_place {
    struct tls_handshake *handshake; /* NULL: free */
    uint32_t number;
    uint32_t taken; /* bytes of the peer */
    bool awaits;    /* the handshake is done, and takes tickets */
    /* the latest bytes, while the engine waits for a file; NULL: the peer is waited for */
    uint8_t *held;
    uint32_t held_n;
};

struct tls_handshakes {
    const struct tls_engine_ops *ops;
    struct tls_engine *engine;
    unsigned n;
    struct tls_reply reply;
    struct handshake_place places[TLS_HANDSHAKES_MOST];
    uint8_t peer[TLS_PEER_MOST];
    uint8_t facts[TLS_FACTS_MOST];
    uint8_t out[TLS_FLIGHT_MOST];
};

struct tls_handshakes *tls_handshakes_create(
    const struct tls_engine_ops *ops, struct tls_engine *engine)
{
    struct tls_handshakes *handshakes = calloc(1, sizeof(*handshakes));

    if (handshakes == NULL)
        return NULL;
    handshakes->ops = ops;
    handshakes->engine = engine;
    return handshakes;
}

static void end_place(struct tls_handshakes *handshakes, struct handshake_place *place)
{
    assert(place->handshake != NULL && handshakes->n > 0);
    handshakes->ops->end(place->handshake);
    free(place->held);
    *place = (struct handshake_place) { .handshake = NULL };
    handshakes->n--;
}

/* Forgets the secrets of the last reply, and makes room for the next. */
static void clear_reply(struct tls_handshakes *handshakes)
{
    explicit_bzero(&handshakes->reply.session, sizeof(handshakes->reply.session));
    handshakes->reply = (struct tls_reply) {
        .out = handshakes->out,
        .out_most = sizeof(handshakes->out),
        .peer = handshakes->peer,
        .facts = handshakes->facts,
    };
}

void tls_handshakes_end_all(struct tls_handshakes *handshakes)
{
    for (unsigned i = 0; i < TLS_HANDSHAKES_MOST && handshakes->n > 0; i++)
        if (handshakes->places[i].handshake != NULL)
            end_place(handshakes, &handshakes->places[i]);
    assert(handshakes->n == 0);
    clear_reply(handshakes);
}

void tls_handshakes_destroy(struct tls_handshakes *handshakes)
{
    if (handshakes == NULL)
        return;
    tls_handshakes_end_all(handshakes);
    free(handshakes);
}

unsigned tls_handshakes_count(const struct tls_handshakes *handshakes)
{
    return handshakes->n;
}

static enum tls_step fail_handshake(struct tls_reply *reply, const char *text)
{
    snprintf(reply->text, sizeof(reply->text), "%s", text);
    return TLS_FAILED;
}

/* Gives the bytes to the engine, and checks the step that the engine has come to. */
static enum tls_step feed_engine(struct tls_handshakes *handshakes,
    const struct handshake_place *place, fb_bytes in, struct tls_reply *reply)
{
    enum tls_step step = handshakes->ops->feed(place->handshake, in, reply);

    assert(step <= TLS_LATER);
    assert(step == TLS_LATER || (reply->used <= in.n && reply->out_n <= reply->out_most));
    assert(reply->peer_n <= TLS_PEER_MOST && reply->facts_n <= TLS_FACTS_MOST);
    assert(step != TLS_MORE || reply->used == in.n);
    assert(reply->session.awaits_tickets <= (handshakes->ops->ticket != NULL));
    return step;
}

/* Keeps the bytes of a handshake that waits for a file. */
static enum tls_step hold_bytes(struct handshake_place *place, fb_bytes in, struct tls_reply *reply)
{
    place->held = malloc(in.n + 1);
    if (place->held == NULL)
        return fail_handshake(reply, "no memory for a handshake");
    if (in.n > 0)
        memcpy(place->held, in.p, in.n);
    place->held_n = (uint32_t)in.n;
    return TLS_LATER;
}

/* Gives new bytes to the handshake of a place. */
static enum tls_step feed_place(struct tls_handshakes *handshakes, struct handshake_place *place,
    fb_bytes in, struct tls_reply *reply)
{
    enum tls_step step;

    if (place->handshake == NULL)
        return fail_handshake(reply, "no memory for a handshake");
    if (in.n > TLS_HANDSHAKE_MOST - place->taken)
        return fail_handshake(reply, "the handshake is too long");
    place->taken += (uint32_t)in.n;
    step = feed_engine(handshakes, place, in, reply);
    return step == TLS_LATER ? hold_bytes(place, in, reply) : step;
}

/* Ends the handshake of a place after its last reply, unless tickets are awaited. */
static void end_after(
    struct tls_handshakes *handshakes, struct handshake_place *place, enum tls_step step)
{
    place->awaits = step == TLS_DONE && handshakes->reply.session.awaits_tickets != 0;
    if (step != TLS_MORE && step != TLS_LATER && place->handshake != NULL && !place->awaits)
        end_place(handshakes, place);
}

int tls_handshakes_feed(struct tls_handshakes *handshakes, const struct tls_request *request,
    unsigned profile_n, enum tls_step *step, struct tls_reply **reply)
{
    struct handshake_place *place = &handshakes->places[TLS_PLACE(request->number)];

    assert(TLS_PLACE(request->number) < TLS_HANDSHAKES_MOST);
    clear_reply(handshakes);
    if (request->kind == TLS_BEGIN) {
        if (place->handshake != NULL || request->start.profile >= profile_n)
            return -1;
        place->handshake = handshakes->ops->begin(handshakes->engine, &request->start);
        place->number = request->number;
        handshakes->n += place->handshake != NULL;
    } else if (request->kind != TLS_FEED || place->handshake == NULL || place->awaits ||
               place->held != NULL || place->number != request->number) {
        return -1;
    }
    *step = feed_place(handshakes, place, request->in, &handshakes->reply);
    *reply = &handshakes->reply;
    end_after(handshakes, place, *step);
    return 0;
}

bool tls_handshakes_resume(struct tls_handshakes *handshakes, unsigned *from, uint32_t *number,
    enum tls_step *step, struct tls_reply **reply)
{
    for (; *from < TLS_HANDSHAKES_MOST && handshakes->n > 0; (*from)++) {
        struct handshake_place *place = &handshakes->places[*from];
        const fb_bytes in = { .p = place->held, .n = place->held_n };

        if (place->held == NULL)
            continue;
        clear_reply(handshakes);
        *number = place->number;
        *step = feed_engine(handshakes, place, in, &handshakes->reply);
        *reply = &handshakes->reply;
        if (*step == TLS_LATER)
            continue;
        free(place->held);
        place->held = NULL;
        end_after(handshakes, place, *step);
        (*from)++;
        return true;
    }
    return false;
}

int tls_handshakes_ticket(struct tls_handshakes *handshakes, const struct tls_request *request)
{
    struct handshake_place *place = &handshakes->places[TLS_PLACE(request->number)];

    assert(request->kind == TLS_TICKET && TLS_PLACE(request->number) < TLS_HANDSHAKES_MOST);
    if (place->handshake == NULL || place->number != request->number)
        return 0;
    if (!place->awaits)
        return -1;
    if (!handshakes->ops->ticket(place->handshake, request->in))
        end_place(handshakes, place);
    return 0;
}

void tls_handshakes_cancel(struct tls_handshakes *handshakes, uint32_t number)
{
    struct handshake_place *place = &handshakes->places[TLS_PLACE(number)];

    assert(TLS_PLACE(number) < TLS_HANDSHAKES_MOST);
    if (place->handshake != NULL && place->number == number)
        end_place(handshakes, place);
}

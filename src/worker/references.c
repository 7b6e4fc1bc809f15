/* SPDX-License-Identifier: BSD-2-Clause */
/* Resolves references, and counts and logs guesses. */
#include "worker/references.h"

#include "session/conn.h"
#include "session/use.h"
#include "worker/messages_private.h"
#include "worker/worker.h"

#include <assert.h>

/* Bits of a serial in an incarnation, and in a worker's name. */
#define SERIAL_LOW_BITS (INCARNATION_BITS - SLOT_BITS)
#define SERIAL_HIGH_BITS (32 - SERIAL_LOW_BITS)
#define NAME_OF(ref) ((ref) & ((UINT64_C(1) << REFERENCES_NAME_BITS) - 1))

static_assert(SESSION_NAME_LEAST >= UINT64_C(1) << SERIAL_HIGH_BITS, "no name is a worker's too");
static_assert(SESSION_NAME_BITS == REFERENCES_NAME_BITS, "a name fits into a reference");

/* Rate of guesses that are answered. */
static const struct token_rate guess_rate = { .burst = 1024, .per_second = 250 };
/* Interval of log lines about guesses. */
#define SAY_EVERY_MS 1000

bool references_is_worker(fb_ref ref)
{
    return ref != 0 && NAME_OF(ref) >> SERIAL_HIGH_BITS == 0;
}

fb_ref references_of_slot(struct slot_id id)
{
    assert(slot_id_is_valid(id));
    return (fb_ref)slot_incarnation(id) << REFERENCES_NAME_BITS | id.serial >> SERIAL_LOW_BITS;
}

uint32_t references_own(const struct worker *worker)
{
    return slot_incarnation(worker->heritage->slot);
}

fb_ref references_own_worker(const struct worker *worker)
{
    return references_of_slot(worker->heritage->slot);
}

struct fb_conn *references_find(struct worker *worker, fb_ref ref)
{
    if (references_incarnation(ref) != references_own(worker))
        return NULL;
    return session_find(&worker->stream, NAME_OF(ref));
}

struct fb_conn *references_find_for(struct fb_worker *handle, fb_ref ref)
{
    struct worker *worker = worker_of(handle);
    struct fb_conn *conn = references_find(worker, ref);
    const struct server *server;

    if (conn == NULL) {
        if (references_is_guess(worker, ref))
            references_note_guess(worker);
        return NULL;
    }
    server = session_server_of(conn);
    return server->protocol_index == handle->index ||
                   (server->protocol->flags & FB_TAKES_FOREIGN) != 0
               ? conn
               : NULL;
}

bool references_is_guess(struct worker *worker, fb_ref ref)
{
    return references_incarnation(ref) == references_own(worker) && !references_is_worker(ref) &&
           !session_name_was_given(&worker->stream, NAME_OF(ref));
}

bool references_note_guess(struct worker *worker)
{
    struct messages *messages = worker->messages;
    uint64_t now = worker->stream.net.loop.clock.mono_ms;

    if (messages == NULL) /* no reference was given out: there is nothing to find */
        return true;
    messages->guess_n++;
    if (messages->guess_told_ms == 0 || now - messages->guess_told_ms >= SAY_EVERY_MS) {
        log_write(&worker->log, LEVEL_WARN, 0,
            "references were used that were never given out, %u in all", messages->guess_n);
        messages->guess_told_ms = now;
    }
    return token_bucket_take(&messages->guesses, &guess_rate, now);
}

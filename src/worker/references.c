/* SPDX-License-Identifier: BSD-2-Clause */
/* Resolves references, and counts and logs guesses. */
#include "worker/references.h"

#include "session/conn.h"
#include "session/use.h"
#include "worker/messages_private.h"

static_assert(
    SESSION_NAME_LEAST >= UINT64_C(1) << REFERENCES_SERIAL_HIGH_BITS, "no name is a worker's too");
static_assert(SESSION_NAME_BITS == REFERENCES_NAME_BITS, "a name fits into a reference");

/* Rate of guesses that are answered. */
static const struct token_rate guess_rate = { .burst = 1024, .per_second = 250 };
/* Interval of log lines about guesses. */
#define SAY_EVERY_MS 1000

struct fb_conn *references_find(struct worker *worker, fb_ref ref)
{
    if (references_incarnation(ref) != references_own(worker))
        return NULL;
    return session_find(&worker->stream, REFERENCES_NAME(ref));
}

bool references_takes(const struct fb_conn *conn, const struct worker *worker, uint64_t mark)
{
    const struct server *server = session_server_of(conn);

    return worker->protocols[server->protocol_index].mark == mark ||
           (server->protocol->flags & FB_TAKES_FOREIGN) != 0;
}

struct fb_conn *references_find_for(struct fb_worker *handle, fb_ref ref)
{
    struct worker *worker = worker_of(handle);
    struct fb_conn *conn = references_find(worker, ref);

    if (conn == NULL && references_is_guess(worker, ref))
        references_note_guess(worker);
    return conn != NULL && references_takes(conn, worker, handle->mark) ? conn : NULL;
}

bool references_is_guess(struct worker *worker, fb_ref ref)
{
    return references_incarnation(ref) == references_own(worker) && !references_is_worker(ref) &&
           !session_name_was_given(&worker->stream, REFERENCES_NAME(ref));
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

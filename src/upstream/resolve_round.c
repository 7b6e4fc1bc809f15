/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a round: a changed draft replaces the found addresses, news are logged, and the next
 * round gets its time. */
#include "upstream/resolve_private.h"

#include "base/log.h"
#include "upstream/queue.h"
#include "upstream/refresh.h"

#include <stdio.h>
#include <string.h>

/* After a failure a name is asked for again after this time, then after twice as long ... */
#define RETRY_MS 1000u
#define RETRY_MOST_MS 30000u

/* ---- What was found ---- */

/* Puts the draft in force, for the session's peers or for all workers; -1 without memory. */
static int take_draft(struct resolve *resolve)
{
    const struct memory *memory = resolve_memory(resolve);
    struct resolve_set *set;

    if (resolve->upstream->is_of_session)
        return refresh_replace(resolve->upstream, resolve->server, resolve->draft, &resolve->found);
    if (resolve_set_equal(resolve->found, resolve->draft))
        return 0;
    set = resolve_set_copy(memory, resolve->draft);
    if (set == NULL)
        return -1;
    memory_release(memory, resolve->found);
    resolve->found = set;
    addresses_write(resolve->upstreams->writer, resolve->entry, set);
    return 0;
}

/* ---- The log ---- */

static void log_round_failure(struct resolve *resolve)
{
    const struct resolve_set *found = resolve->found;

    assert(resolve->why != NULL);
    if (resolve->upstream->is_of_session || resolve->logged == resolve->why)
        return;
    resolve->logged = resolve->why;
    log_write(resolve->upstreams->log, LEVEL_ERROR, 0,
        "\"%s\" could not be resolved: %s, server \"%s\" of upstream \"%s\" %s", resolve->why_name,
        resolve->why, resolve->server->name, resolve->upstream->name,
        found == NULL || found->n == 0 ? "is down" : "keeps its addresses");
}

static void log_found(struct resolve *resolve, size_t before)
{
    if (resolve->upstream->is_of_session)
        return;
    if (resolve->logged != NULL || before != resolve->found->n)
        log_write(resolve->upstreams->log, resolve->logged != NULL ? LEVEL_NOTICE : LEVEL_INFO, 0,
            "server \"%s\" of upstream \"%s\" has been resolved, addresses: %zu",
            resolve->server->name, resolve->upstream->name, resolve->found->n);
    if (resolve->found->is_cut && before != resolve->found->n)
        log_write(resolve->upstreams->log, LEVEL_WARN, 0,
            "server \"%s\" of upstream \"%s\" has more addresses than %d, which are used",
            resolve->server->name, resolve->upstream->name, RESOLVE_ADDRESSES);
    resolve->logged = NULL;
}

void resolve_note_failure(struct resolve *resolve, const char *name, const char *why)
{
    if (resolve->why != NULL)
        return;
    resolve->why = why;
    snprintf(resolve->why_name, sizeof(resolve->why_name), "%s", name);
}

void resolve_note_memory(struct resolve *resolve)
{
    resolve->has_failed = true;
    resolve_note_failure(resolve, resolve->server->host, "there is no memory");
}

/* ---- The end of a round ---- */

static uint32_t random_of_round(const struct resolve *resolve, uint32_t below)
{
    return resolve->upstreams->random(resolve->upstreams, below);
}

/* Returns a growing time until the next round, a quarter by chance. */
static uint64_t retry_delay(const struct resolve *resolve)
{
    unsigned doubled = resolve->failures < 6 ? resolve->failures : 6;
    uint32_t ms = RETRY_MS << (doubled > 0 ? doubled - 1 : 0);

    if (ms > RETRY_MOST_MS)
        ms = RETRY_MOST_MS;
    return ms - random_of_round(resolve, ms / 4);
}

/* Sets the time of the next round, if any. An answer is asked for again after its time has passed
 * for sure, and once a second at most. */
static void schedule(struct resolve *resolve)
{
    uint64_t ms = (uint64_t)(resolve->ttl > 0 ? resolve->ttl : 1) * 1000 + 1;

    if (resolve->upstream->is_of_session)
        return;
    if (resolve->failures > 0)
        ms = retry_delay(resolve);
    else if (!resolve->server->resolve)
        return;
    else
        ms += random_of_round(resolve, 250);
    timer_set(resolve->upstreams->loop, &resolve->timer, ms);
}

void resolve_free_round(struct resolve *resolve)
{
    assert(resolve->service == NULL && resolve->waits == 0);
    memory_release(resolve_memory(resolve), resolve->targets);
    memory_release(resolve_memory(resolve), resolve->draft);
    resolve->targets = NULL;
    resolve->draft = NULL;
    resolve->target_n = 0;
}

/* Reports the end of a round to waiting sessions, or to all workers. */
static void note_answered(struct resolve *resolve)
{
    struct upstreams *upstreams = resolve->upstreams;
    struct upstream *upstream = resolve->upstream;

    if (!upstream->is_of_session) {
        addresses_note(upstreams->writer, resolve->entry, upstreams->loop->clock.mono_ms,
            resolve->why != NULL ? resolve->why_name : NULL, resolve->why);
        if (addresses_changes(upstreams->addresses) != upstreams->published_changes)
            upstreams->published(upstreams);
        upstreams->published_changes = addresses_changes(upstreams->addresses);
        return;
    }
    upstream->unresolved = resolve->why;
    if (!resolve->has_answered) {
        assert(upstream->unanswered > 0);
        upstream->unanswered--;
    }
    resolve->has_answered = true;
    queue_wake(upstream);
}

void resolve_end_round(struct resolve *resolve)
{
    size_t before = resolve->found != NULL ? resolve->found->n : 0;

    CHECK_KIND(resolve, RESOLVE_KIND);
    assert(resolve->waits == 0 && resolve->service == NULL);
    if (resolve->draft != NULL) {
        if (resolve->has_failed && resolve->found != NULL)
            resolve_set_join(resolve->draft, resolve->found);
        resolve_set_sort(resolve->draft, false);
        if (take_draft(resolve) == -1)
            resolve_note_memory(resolve);
    }
    if (resolve->has_failed || resolve->found == NULL || resolve->found->n == 0)
        resolve->failures++;
    else
        resolve->failures = 0;
    if (resolve->why != NULL)
        log_round_failure(resolve);
    else
        log_found(resolve, before);
    resolve_free_round(resolve);
    schedule(resolve);
    note_answered(resolve);
}

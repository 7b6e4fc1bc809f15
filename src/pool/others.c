/* SPDX-License-Identifier: BSD-2-Clause */
/* The other master process's workers, during an upgrade, as ours exchange messages with them. Its
 * slots are the other half of all, so that an incarnation says whose worker it is. A worker that
 * starts asks for them once; inboxes are asked for each time, and none is kept here. What the other
 * process says is a number, whatever it is, and a worker that it names may be gone: nothing is
 * asserted on. */
#include "pool/others.h"
#include "pool/outbox.h"

#include "process/role.h"

#include <assert.h>

static const char asked_twice[] = "a second request for the workers of another master process";

const char *pool_others_want(struct pool_worker *worker)
{
    assert(worker->pid > 0);
    if (worker->asks_others)
        return asked_twice;
    worker->asks_others = true;
    worker->outbox.others_wanted = true;
    channel_end_send_more(&worker->channel);
    return NULL;
}

void pool_others_came(struct pool *pool, const uint32_t *others, unsigned n)
{
    struct generation *generation;
    struct pool_worker *worker;

    assert(role_is(ROLE_MASTER));
    if (!pool->others_met) /* nobody has asked */
        return;
    pool->others_n = 0;
    for (unsigned i = 0; i < n && pool->others_n < SLOT_MAX; i++)
        if (others[i] >> INCARNATION_BITS == 0 && pool_others_have(pool, others[i]))
            pool->others[pool->others_n++] = others[i];
    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_WORKER (worker, generation) {
            if (!worker->outbox.others_asked && worker->outbox.others_left == 0)
                continue;
            worker->outbox.others_asked = false;
            worker->outbox.others_left = pool->others_n;
            channel_end_send_more(&worker->channel);
        }
}

void pool_others_inbox_came(
    struct pool *pool, uint32_t incarnation, uint32_t asker, bool found, int fd)
{
    struct pool_worker *worker = pool_worker_of_incarnation(pool, asker);
    struct generation *generation;

    assert(role_is(ROLE_MASTER));
    pool->asks_n -= pool->asks_n > 0;
    if (worker != NULL && worker->killed == POOL_KILL_NONE &&
        incarnation >> INCARNATION_BITS == 0 && pool_others_have(pool, incarnation) &&
        ((found && fd == -1) || !pool_outbox_give_inbox(worker, incarnation, fd)) &&
        !pool_outbox_want_inbox_later(worker, incarnation))
        pool_worker_break_rule(worker, "it does not read what it is sent");
    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_WORKER (worker, generation)
            if (worker->outbox.wanted_n > 0) /* another request has room */
                channel_end_send_more(&worker->channel);
}

void pool_others_note_gone(struct pool *pool, uint32_t incarnation)
{
    assert(role_is(ROLE_MASTER));
    if (pool->others_met && incarnation >> INCARNATION_BITS == 0 &&
        pool_others_have(pool, incarnation))
        pool_outbox_add_gone(pool, incarnation, NULL);
}

void pool_others_end(struct pool *pool)
{
    const uint32_t serials = (1u << (INCARNATION_BITS - SLOT_BITS)) - 1;
    struct generation *generation;
    struct pool_worker *worker;

    assert(role_is(ROLE_MASTER));
    pool->others_n = pool->asks_n = 0;
    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_WORKER (worker, generation) {
            worker->outbox.others_asked = false;
            worker->outbox.others_left = 0;
        }
    if (pool->others_met)
        pool_outbox_add_gone(
            pool, CHANNEL_OTHERS_GONE | (pool->shared->other_serial & serials), NULL);
    pool->others_met = false;
}

unsigned pool_others_list_own(struct pool *pool, uint32_t own[SLOT_MAX])
{
    const struct generation *generation;
    const struct pool_worker *worker;
    unsigned n = 0;

    pool->others_met = true;
    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_SERVING (worker, generation)
            if (worker->pid > 0 && n < SLOT_MAX)
                own[n++] = slot_incarnation(worker->slot);
    return n;
}

int pool_others_find_inbox(struct pool *pool, uint32_t incarnation)
{
    pool->others_met = true;
    return pool_outbox_find_inbox(pool, incarnation);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes up what an ending or ended master process has held. A killed process releases nothing: the
 * list of its workers is polled until their end. */
#include "upgrade/alone.h"

#include "configuration/listeners.h"
#include "pool/listeners.h"
#include "pool/start.h"
#include "process/role.h"
#include "upgrade/upgrade.h"

#include <assert.h>

/* Poll interval for workers of an ended master process. */
#define OTHERS_LEFT_MS 500
/* The same where they listen on paths of ours, and for how long at most: then the reload fails, and
 * says why. */
#define LOST_PATHS_MS 50
#define LOST_PATHS_TRIES 100

static void note_living(void *arg, const struct left_worker *left)
{
    bool *living = arg;

    living[left->slot] = true;
}

/* Releases the worker slots of the ended process, as the workers end. */
static void look_at_others(struct loop *loop, struct timer *timer)
{
    struct upgrade *upgrade = container_of(timer, struct upgrade, others_left);
    struct pool *pool = upgrade->pool;
    bool living[SLOT_HALVES * SLOT_MAX] = { false };
    unsigned side = 1 - pool->shared->half;
    struct generation *generation;

    (void)loop;
    assert(role_is(ROLE_MASTER));
    if (upgrade->phase != UPGRADE_NONE) /* the next one's slots are the same */
        return;
    timer->expired = look_at_others;
    if (worker_list_find_others(pool->list, note_living, living) > 0)
        timers_arm(pool->timers, timer, OTHERS_LEFT_MS);
    TAILQ_FOREACH (generation, &pool->generations, link)
        for (uint32_t slot = side * SLOT_MAX; slot < (side + 1) * SLOT_MAX; slot++)
            if (!living[slot])
                zones_slot_released(&generation->cycle->zones, (struct slot_id) { .slot = slot });
}

/* Begins a reload, to rebind unix paths unlinked by the ended process. Waits for workers of a
 * killed process: the workers listen until aware of the death. */
static void bind_lost_paths(struct loop *loop, struct timer *timer)
{
    struct upgrade *upgrade = container_of(timer, struct upgrade, lost_paths);
    const struct generation *serving = upgrade->pool->serving;
    unsigned in_use;

    (void)loop;
    assert(role_is(ROLE_MASTER));
    timer->expired = bind_lost_paths;
    timers_disarm(upgrade->pool->timers, timer);
    if (!upgrade->ops->serves(upgrade->host) || serving->phase != GENERATION_SERVING ||
        upgrade->sockets.n > 0 || upgrade->phase == UPGRADE_JOINING ||
        upgrade->phase == UPGRADE_BESIDE || listeners_count_lost(serving->cycle, &in_use) == 0)
        return;
    if (in_use > 0 && upgrade->lost_paths_tries-- > 0)
        timers_arm(upgrade->pool->timers, timer, LOST_PATHS_MS);
    else
        signals_raise(COMMAND_RELOAD);
}

static void look_for_lost_paths(struct upgrade *upgrade)
{
    upgrade->lost_paths_tries = LOST_PATHS_TRIES;
    bind_lost_paths(NULL, &upgrade->lost_paths);
}

/* The lock is ours alone once the other process has ended: a remaining holder is a child of ours
 * that is about to close it. The lock's file goes with our quit. */
static void own_lock(struct upgrade *upgrade)
{
    if (upgrade->phase == UPGRADE_NONE)
        upgrade->endpoints->pidfile.shared = false;
    look_at_others(NULL, &upgrade->others_left);
}

void upgrade_alone_rescan(struct upgrade *upgrade)
{
    own_lock(upgrade);
    pool_rescan(upgrade->pool, NULL);
    look_for_lost_paths(upgrade);
}

void upgrade_alone_go_on(struct upgrade *upgrade)
{
    assert(upgrade->phase == UPGRADE_NONE);
    own_lock(upgrade);
    if (!upgrade->ops->serves(upgrade->host))
        return;
    /* a reload meanwhile may have moved the endpoints */
    endpoints_publish_again(upgrade->endpoints, &upgrade->pool->serving->cycle->core, NULL);
    pool_revive(upgrade->pool);
    look_for_lost_paths(upgrade);
    pool_rescan(upgrade->pool, NULL);
}

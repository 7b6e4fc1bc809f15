/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets a level for the error logs of the master, of workers and of helpers, in place of the
 * configuration's levels, until a time or a command. The level is published in memory that workers
 * only read, for new processes too; a message makes living processes look. Never read from a
 * worker. */
#include "pool/log_level.h"

#include "process/role.h"

#include <assert.h>
#include <stdio.h>

static void log_level_ended(struct loop *loop, struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, log_level.end);
    char text[80];

    assert(pool->log_level.override != 0);
    (void)loop;
    snprintf(text, sizeof(text), "the time of \"log %s\" has passed, error logs have their levels",
        log_level_name((enum log_level)(pool->log_level.override - 1)));
    pool_log_level_set(pool, 0, 0, text);
}

void pool_log_level_init(struct pool *pool)
{
    pool->log_level.end.expired = log_level_ended;
}

void pool_log_level_done(struct pool *pool)
{
    timers_disarm(pool->timers, &pool->log_level.end);
}

/* Writes the line under the more verbose of the two levels. */
static void override_master_log(struct log *log, uint32_t override, const char *text)
{
    enum log_level level = log->level;
    uint32_t before = log->override;

    log_set_override(log, override);
    if (log->level < level)
        log_set_override(log, before);
    log_event(log, "log_level", LEVEL_NOTICE, 0, "%s", text);
    log_set_override(log, override);
}

void pool_log_level_set(struct pool *pool, uint32_t override, int64_t ms, const char *text)
{
    struct pool_log_level *level = &pool->log_level;
    struct pool_worker *worker;

    assert(role_is(ROLE_MASTER));
    assert(ms >= 0 && (ms == 0 || override != 0));
    level->override = override;
    level->until_ms = ms > 0 ? pool->clock->wall_ms + ms : 0;
    if (ms > 0)
        timers_arm(pool->timers, &level->end, (uint64_t)ms);
    else
        timers_disarm(pool->timers, &level->end);
    override_master_log(pool->log, override, text);
    pool->shared->published->log_override = override;
    POOL_FOREACH_WORKER (worker, pool)
        channel_end_send(&worker->channel, MESSAGE_LOG_LEVEL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reloads, step by step: a process of its own checks the configuration while we go on to serve, then we
 * read it ourselves and start a generation, which commits and serves or fails. Each end of a reload is
 * one call, reload_fail() or the pool's `serves`. At most one reload is under way. */
#include "master/master.h"

#include "base/compiler.h"
#include "process/logs.h"
#include "process/role.h"

#include <assert.h>

/* A check takes too long. */
static void deadline_expired(struct fb_loop *loop, struct fb_timer *timer)
{
    struct reload *reload = fb_container(timer, struct reload, deadline);

    (void)loop;
    assert(reload->phase == RELOAD_CHECKING);
    config_check_kill(&reload->check);
}

void reload_init(struct reload *reload, struct timers *timers)
{
    *reload = (struct reload) { .timers = timers, .deadline = { .expired = deadline_expired } };
}

void reload_set_phase(struct reload *reload, enum reload_phase phase)
{
    static const unsigned legal[] = {
        [RELOAD_IDLE] = 1u << RELOAD_CHECKING,
        [RELOAD_CHECKING] = 1u << RELOAD_PREPARING | 1u << RELOAD_IDLE,
        [RELOAD_PREPARING] = 1u << RELOAD_COMMITTED | 1u << RELOAD_IDLE,
        [RELOAD_COMMITTED] = 1u << RELOAD_IDLE,
    };

    assert(role_is(FB_ROLE_MASTER));
    assert((legal[reload->phase] >> phase & 1) != 0);
    reload->phase = phase;
}

bool reload_is_under_way(const struct reload *reload)
{
    return reload->phase != RELOAD_IDLE;
}

void reload_check(const struct reload *reload, const struct pool *pool)
{
    const struct generation *starting = pool->starting;

    assert((reload->check.pid > 0) == (reload->phase == RELOAD_CHECKING));
    assert(reload->phase == RELOAD_CHECKING || !fb_timer_is_set(&reload->deadline));
    switch (reload->phase) {
    case RELOAD_IDLE:
        assert(starting == NULL || pool->serving == NULL); /* the daemon's start */
        break;
    case RELOAD_CHECKING:
        assert(starting == NULL && pool->serving != NULL);
        break;
    case RELOAD_PREPARING:
        assert(starting != NULL && starting->phase == GENERATION_STARTING);
        assert(pool->serving != NULL);
        break;
    case RELOAD_COMMITTED:
        assert(starting != NULL && starting->phase == GENERATION_COMMITTED);
        break;
    }
}

/* Reads the configuration and starts its generation; -1 after an emerg line. */
static int start_generation(struct master *master)
{
    struct descriptors before = { .fds = NULL }, opened = { .fds = NULL };
    struct fb_log *log = &master->log;
    struct fb_cycle *cycle;

    descriptors_add_open(&before, NULL);
    cycle = fb_cycle_load(master->options, log, -1);
    if (cycle != NULL)
        descriptors_add_open(&opened, &before);
    descriptors_done(&before);
    fb_clock_read(&master->clock); /* reading may have taken long */
    if (cycle == NULL)
        return -1;
    if (fb_logs_open(&cycle->core, log) == -1 ||
        fb_master_prepare_endpoints(master, &cycle->core) == -1) {
        descriptors_done(&opened);
        pool_discard_cycle(&master->pool, cycle);
        return -1;
    }
    fb_sizing_log(cycle, log);
    return generation_start(&master->pool, cycle, &opened);
}

void reload_fail(struct master *master)
{
    reload_set_phase(&master->reload, RELOAD_IDLE);
    endpoints_undo(&master->endpoints, &master->log);
    fb_clock_read(&master->clock);
    fb_result_end(master, false);
}

static void fail_at_once(struct master *master)
{
    fb_log(&master->log, FB_ERROR, 0,
        "reload failed: the configuration before stays in force, correct the new one and try "
        "again");
    reload_fail(master);
}

void reload_begin(struct master *master)
{
    struct reload *reload = &master->reload;

    if (reload_is_under_way(reload) || master->pool.serving == NULL ||
        !pool_may_start(&master->pool) || upgrade_is_pending(&master->upgrade) ||
        !master_take_command(master, FB_ORDER_RELOAD))
        return;
    assert(master->phase == MASTER_RUNS); /* a pool that ends may start nothing */
    reload_set_phase(reload, RELOAD_CHECKING);
    fb_result_begin(master);
    if (config_check_begin(&reload->check, master->options, &master->log, -1) == -1)
        fail_at_once(master);
    else
        timers_arm(reload->timers, &reload->deadline, CONFIG_CHECK_MS);
}

void reload_checked(struct master *master, int status)
{
    struct reload *reload = &master->reload;

    assert(reload->phase == RELOAD_CHECKING);
    timers_disarm(reload->timers, &reload->deadline);
    if (config_check_end(&reload->check, status, master->options->conf, &master->log) == -1) {
        fail_at_once(master);
        return;
    }
    reload_set_phase(reload, RELOAD_PREPARING);
    if (start_generation(master) == -1)
        fail_at_once(master);
}

void reload_cancel(struct master *master)
{
    struct reload *reload = &master->reload;

    if (reload->phase != RELOAD_CHECKING)
        return;
    timers_disarm(reload->timers, &reload->deadline);
    config_check_cancel(&reload->check);
    reload_fail(master);
}

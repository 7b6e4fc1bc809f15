/* SPDX-License-Identifier: BSD-2-Clause */
/* The phases of the daemon and of a reload, and the steps of a reload: a separate process checks
 * the configuration, then the master reads it and starts a generation, which commits and serves
 * or fails. One function changes each phase, by legal steps; reload_end() alone ends a reload.
 * At most one reload is under way. */
#include "master/reload.h"

#include "base/trace.h"
#include "configuration/configuration.h"
#include "configuration/logs.h"
#include "master/master.h"
#include "pool/start.h"
#include "process/process_ops.h"
#include "process/role.h"

#include <assert.h>
#include <stdio.h>

void master_set_phase(struct master *master, enum master_phase phase)
{
    static const unsigned legal[] = {
        [MASTER_RUNS] = 1u << MASTER_QUITS | 1u << MASTER_TERMINATES,
        [MASTER_QUITS] = 1u << MASTER_RESUMES | 1u << MASTER_TERMINATES,
        [MASTER_RESUMES] = 1u << MASTER_RUNS | 1u << MASTER_QUITS,
        [MASTER_TERMINATES] = 0,
    };

    CHECK_KIND(master, MASTER_KIND);
    assert((legal[master->phase] >> phase & 1) != 0);
    master->phase = phase;
    process_ops->set_title(
        phase == MASTER_RUNS ? "master process" : "master process is shutting down", NULL);
}

/* A check takes too long. */
static void check_expired(struct loop *loop, struct timer *timer)
{
    struct reload *reload = container_of(timer, struct reload, deadline);

    (void)loop;
    assert(reload->phase == RELOAD_CHECKING);
    config_check_kill(&reload->check);
}

void reload_set_phase(struct reload *reload, enum reload_phase phase)
{
    static const unsigned legal[] = {
        [RELOAD_IDLE] = 1u << RELOAD_CHECKING,
        [RELOAD_CHECKING] = 1u << RELOAD_PREPARING | 1u << RELOAD_IDLE,
        [RELOAD_PREPARING] = 1u << RELOAD_COMMITTED | 1u << RELOAD_IDLE,
        [RELOAD_COMMITTED] = 1u << RELOAD_PROVING | 1u << RELOAD_GOING_BACK | 1u << RELOAD_IDLE,
        [RELOAD_PROVING] = 1u << RELOAD_GOING_BACK | 1u << RELOAD_IDLE,
        [RELOAD_GOING_BACK] = 1u << RELOAD_IDLE,
    };
    static const char *const names[] = {
        [RELOAD_IDLE] = "idle",
        [RELOAD_CHECKING] = "checking",
        [RELOAD_PREPARING] = "preparing",
        [RELOAD_COMMITTED] = "committed",
        [RELOAD_PROVING] = "proving",
        [RELOAD_GOING_BACK] = "going_back",
    };
    const struct master *master = container_of(reload, struct master, reload);

    assert(role_is(ROLE_MASTER));
    assert((legal[reload->phase] >> phase & 1) != 0);
    reload->phase = phase;
    trace_reload_phase(names[phase], master->pool.serving->number);
}

void reload_check(const struct reload *reload, const struct pool *pool)
{
    const struct generation *starting = pool->starting;

    assert((reload->check.pid > 0) == (reload->phase == RELOAD_CHECKING));
    assert(reload->phase == RELOAD_CHECKING || reload->deadline.deadline == 0);
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
    case RELOAD_PROVING:
        assert(starting == NULL && pool->probation.before != NULL);
        assert(!pool->probation.goes_back);
        break;
    case RELOAD_GOING_BACK:
        assert(pool->probation.goes_back); /* the old one starts, or waits */
        break;
    }
}

/* A reload for a resume has ended: the daemon serves (`ok`), or still ends. */
static void end_resume(struct master *master, bool ok)
{
    assert(master->phase == MASTER_RESUMES);
    if (!ok) {
        log_write(&master->log, LEVEL_ERROR, 0, "resume failed: the daemon goes on to shut down");
        pool_set_ending(&master->pool, true);
    }
    master->termed = false;
    master_set_phase(master, ok ? MASTER_RUNS : MASTER_QUITS);
}

void reload_end(struct master *master, bool ok)
{
    struct reload_status *result = &master->reload.result;
    struct control_outcome outcome = { .ok = ok, .error = result->why, .diag = master->diag };

    bool ending = master->phase == MASTER_QUITS || master->phase == MASTER_TERMINATES;

    assert(master->pool.serving != NULL);
    /* the pool has given up a failed way back, and not yet a successful one */
    if (master->reload.phase == RELOAD_GOING_BACK && !ending)
        outcome.in_force = master->pool.probation.goes_back ? "previous" : "new";
    reload_set_phase(&master->reload, RELOAD_IDLE);
    if (master->phase == MASTER_RESUMES)
        end_resume(master, ok);
    if (!ok) {
        endpoints_undo(&master->endpoints);
        process_ops->read_clock(&master->clock);
    }
    master->reload.tried++;
    master->reload.failed += !ok;
    *result = (struct reload_status) { .any = true, .ok = ok, .at_ms = master->clock.wall_ms };
    if (!ok) {
        snprintf(result->why, sizeof(result->why), "%s",
            ending ? "the daemon is ending" : "the error log says why");
        diag_reason(master->diag, LEVEL_EMERG, result->why, sizeof(result->why));
    }
    if (ok)
        event_log_note(master->log.event_log, "reload_done", "generation %u serves",
            master->pool.serving->number);
    else
        event_log_note(master->log.event_log, "reload_failed", "%s", result->why);
    if (master->manager.any)
        service_manager_reload(&master->manager);
    outcome.generation = master->pool.serving->number;
    if (master->control.client_n > 0)
        control_reply(&master->control, CONTROL_WAIT_RELOAD_END, &outcome);
    log_collect(&master->log, NULL);
}

static void fail_at_once(struct master *master)
{
    if (master->phase == MASTER_RUNS)
        log_write(&master->log, LEVEL_ERROR, 0,
            "reload failed: the previous configuration stays in force, correct the new "
            "configuration and try again");
    reload_end(master, false);
}

void reload_begin(struct master *master)
{
    struct reload *reload = &master->reload;

    assert(!master->pool.ending); /* no generation may be started then */
    assert(master->pool.serving != NULL && master->pool.starting == NULL);
    reload_set_phase(reload, RELOAD_CHECKING);
    if (master->manager.any)
        service_manager_reload(&master->manager);
    /* grave lines become diagnostics for the reload's clients */
    log_collect(&master->log, master->diag);
    if (master->control.client_n > 0)
        control_wait_on(&master->control, CONTROL_WAIT_RELOAD, CONTROL_WAIT_RELOAD_END);
    reload->deadline.expired = check_expired;
    reload->check.asks = true;
    reload->check.known = master->pool.serving->cycle->stream.addresses;
    if (config_check_begin(&reload->check, master->options, &master->log, -1) == -1)
        fail_at_once(master);
    else
        timers_arm(&master->timers, &reload->deadline, CONFIG_CHECK_MS);
}

void reload_checked(struct master *master, int status)
{
    struct reload *reload = &master->reload;
    struct descriptors opened = { .fds = NULL };
    char *const *replaced = master->upgrade.controls;
    struct cycle_options options = *master->options;
    struct log *log = &master->log;
    struct cycle *cycle;

    assert(reload->phase == RELOAD_CHECKING);
    timers_disarm(&master->timers, &reload->deadline);
    if (config_check_end(&reload->check, status, master->options->conf, log) == -1) {
        fail_at_once(master);
        return;
    }
    reload_set_phase(reload, RELOAD_PREPARING);
    options.answers = reload->check.answers;
    cycle = configuration_load(&options, log, -1, &opened);
    config_check_done(&reload->check);
    process_ops->read_clock(&master->clock); /* reading may have taken long */
    if (cycle != NULL && (logs_open(&cycle->core, log) == -1 ||
                             endpoints_prepare(&master->endpoints, &cycle->core, replaced) == -1)) {
        descriptors_done(&opened);
        configuration_discard(&cycle, log);
    }
    if (cycle == NULL) {
        fail_at_once(master);
        return;
    }
    sizing_log(cycle, log);
    events_log_debug(cycle, log);
    events_log(cycle, log);
    if (pool_start_generation(&master->pool, cycle, &opened) == -1)
        fail_at_once(master);
}

void reload_cancel(struct master *master)
{
    struct reload *reload = &master->reload;

    if (reload->phase != RELOAD_CHECKING)
        return;
    timers_disarm(&master->timers, &reload->deadline);
    config_check_cancel(&reload->check);
    reload_end(master, false);
}

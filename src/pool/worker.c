/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's record: its phase, orders, deadline and kill. Only the master counts time: a worker
 * may be stopped, be in a job, ignore signals, or have lost its descriptors. Invariant: a worker
 * has at most one deadline, the earliest, with `due` as reason; no message of the worker removes
 * the deadline of a drain or an end. Never decides for a generation. */
#include "pool/worker.h"

#include "base/compiler.h"
#include "channel/fd_passing.h"
#include "os/descriptor.h"
#include "pool/report.h"
#include "process/process_ops.h"
#include "process/role.h"
#include "process/signals.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* Time beyond worker_shutdown_timeout, when the worker closes all sessions. */
#define DRAIN_MORE_MS 1000
/* A worker that was told to end at once, and has not ended so long afterwards, is killed. */
#define CLOSE_MS 2000
/* Time between the close of a channel and the exit. */
#define CHANNEL_LOST_MS 1000
/* How long a core dump may take; then, or when the signal is ignored, SIGKILL follows. */
#define STUCK_MAX_MS 10000

void pool_deadline_set(struct pool_worker *worker, enum pool_kill why)
{
    const struct core_settings *core = &worker->generation->cycle->core;
    struct pool *pool = worker->generation->pool;
    int64_t watchdog = core->worker_watchdog, shutdown = core->worker_shutdown_timeout;
    const int64_t times[POOL_KILLS] = {
        [POOL_KILL_START_LATE] = core->worker_start_timeout,
        [POOL_KILL_STUCK] = watchdog < STUCK_MAX_MS ? watchdog : STUCK_MAX_MS,
        [POOL_KILL_DRAIN_LATE] =
            shutdown > 0 && worker->killed == POOL_KILL_NONE ? shutdown + DRAIN_MORE_MS : 0,
        [POOL_KILL_CLOSE_LATE] = CLOSE_MS,
        [POOL_KILL_CHANNEL_LOST] = CHANNEL_LOST_MS,
    };

    assert(worker->pid > 1 && why < POOL_KILLS);
    if (why == POOL_KILL_NONE && worker->due == POOL_KILL_START_LATE) {
        timers_disarm(pool->timers, &worker->deadline);
        worker->due = POOL_KILL_NONE;
        if (worker->drains) /* the drain was due later than the start */
            why = POOL_KILL_DRAIN_LATE;
    }
    if (why == POOL_KILL_DRAIN_LATE)
        worker->drains = true;
    /* a deadline for the start, droppable by the worker, replaces no other deadline */
    if (times[why] == 0 ||
        (worker->due != POOL_KILL_NONE &&
            (why == POOL_KILL_START_LATE ||
                worker->deadline.deadline <= pool->clock->mono_ms + (uint64_t)times[why])))
        return;
    timers_arm(pool->timers, &worker->deadline, (uint64_t)times[why]);
    worker->due = why;
}

void pool_worker_drop_inbox(struct pool_worker *worker)
{
    if (worker->inbox != -1)
        fd_close_socket(worker->inbox);
    if (worker->outbox.inbox != -1)
        fd_close_socket(worker->outbox.inbox);
    worker->inbox = worker->outbox.inbox = -1;
}

void pool_worker_set_phase(struct pool_worker *worker, enum pool_worker_phase phase)
{
    struct pool *pool = worker->generation->pool;
    static const unsigned legal[] = {
        [POOL_WORKER_EMPTY] = 1u << POOL_WORKER_STARTING,
        [POOL_WORKER_STARTING] = 1u << POOL_WORKER_EMPTY | 1u << POOL_WORKER_READY,
        [POOL_WORKER_READY] =
            1u << POOL_WORKER_EMPTY | 1u << POOL_WORKER_ACCEPTING | 1u << POOL_WORKER_RELEASED,
        [POOL_WORKER_ACCEPTING] = 1u << POOL_WORKER_EMPTY | 1u << POOL_WORKER_RELEASED,
        [POOL_WORKER_RELEASED] = 1u << POOL_WORKER_EMPTY,
    };

    assert(role_is(ROLE_MASTER));
    assert((legal[worker->phase] >> phase & 1) != 0);
    assert(worker->pid > 1 && worker->channel.fd != -1);
    worker->phase = phase;
    if (phase == POOL_WORKER_STARTING) {
        worker->generation->process_n++;
        worker->started_ms = pool->clock->mono_ms;
        worker->outbox = (struct pool_outbox) { .inbox = -1, .link = -1, .gone = pool->gone_n };
        worker->fills++;
        pool_deadline_set(worker, POOL_KILL_START_LATE);
    } else if (phase != POOL_WORKER_EMPTY) {
        pool_deadline_set(worker, POOL_KILL_NONE);
    } else {
        worker->generation->process_n--;
        timers_disarm(pool->timers, &worker->deadline);
        process_ops->wakeup_remove(worker->channel.fd);
        fd_close_socket(worker->channel.fd);
        channel_end_close(&worker->channel);
        logs_output_close(&worker->output, &worker->lines, worker->pid);
        if (worker->known)
            pool_worker_drop_inbox(worker);
        pool_report_lose(worker);
        descriptor_close(worker->outbox.link);
        worker->outbox.link = -1;
        worker->link_n = 0;
        if (worker->handle != -1)
            process_ops->handle_close(worker->handle);
        worker->handle = -1;
        worker->pid = 0;
        worker->broken_listener = -1;
        worker->due = worker->killed = POOL_KILL_NONE;
        worker->known = worker->drains = worker->accept_asked = worker->asks_others = false;
        worker->watch = (struct pool_watch) { .repeats = 0 };
    }
}

void pool_worker_respawn_in(struct pool_worker *worker, uint64_t ms)
{
    assert(worker->phase == POOL_WORKER_EMPTY);
    assert(worker->generation->phase < GENERATION_REPLACED);
    timers_arm(worker->generation->pool->timers, &worker->respawn, ms);
}

void pool_worker_accept(struct pool_worker *worker)
{
    assert(worker->phase >= POOL_WORKER_READY);
    pool_deadline_set(worker, POOL_KILL_START_LATE);
    if (worker->generation->without_mutex)
        channel_end_send(&worker->channel, MESSAGE_MUTEX_OFF);
    worker->accept_asked = true;
    channel_end_send(&worker->channel, MESSAGE_ACCEPT);
}

void pool_worker_end(struct pool_worker *worker, bool gracefully)
{
    assert(worker->phase != POOL_WORKER_EMPTY);
    if (!gracefully && worker->due == POOL_KILL_START_LATE)
        pool_deadline_set(worker, POOL_KILL_NONE); /* a drain begins when it has started */
    pool_deadline_set(worker, gracefully ? POOL_KILL_DRAIN_LATE : POOL_KILL_CLOSE_LATE);
    /* `sigterm_shutdown` is about SIGTERM alone */
    signals_send_held(
        worker->pid, worker->handle, gracefully ? SIGQUIT : SIGINT, worker->generation->pool->log);
}

const char *pool_worker_title(const struct pool_worker *worker)
{
    return worker->task == TASK_ASK    ? "resolver process"
           : worker->task == TASK_KEEP ? "keeper process"
                                       : "worker process";
}

const struct cycle *pool_worker_protocols(const struct pool_worker *worker)
{
    bool has_protocols = worker->task != TASK_ASK && worker->task != TASK_KEEP;

    return has_protocols ? worker->generation->cycle : NULL;
}

struct pool_worker *pool_find_worker(const struct pool *pool, pid_t pid)
{
    struct pool_worker *worker;

    assert(pid > 0);
    POOL_FOREACH_WORKER (worker, pool)
        if (worker->pid == pid)
            return worker;
    return NULL;
}

struct pool_worker *pool_worker_of_incarnation(const struct pool *pool, uint32_t incarnation)
{
    struct pool_worker *worker;

    POOL_FOREACH_SERVING (worker, pool)
        if (worker->pid > 0 && slot_incarnation(worker->slot) == incarnation)
            return worker;
    return NULL;
}

/* Kills a worker in foreign hands, or damaged; the exit replaces it. */
void pool_worker_break_rule(struct pool_worker *worker, const char *rule)
{
    assert(worker->pid > 0);
    if (worker->killed != POOL_KILL_NONE)
        return;
    worker->killed = POOL_KILL_CHANNEL;
    log_quota_event(&worker->lines, "worker_broke_rule", LEVEL_ALERT, 0,
        "%s %d has broken a rule of the channel (%s), and is killed", pool_worker_title(worker),
        (int)worker->pid, rule);
    signals_send_held(worker->pid, worker->handle, SIGKILL, worker->generation->pool->log);
}

/* The watchdog kills a worker that stays in one callback for longer than worker_watchdog. The
 * heartbeat is read twice in that time, and must be unchanged in three readings: a machine that was
 * suspended or busy lets time pass without any. A forged heartbeat can at worst have its own worker
 * killed or spared. */
#define WATCHDOG_REPEATS 2 /* after the first reading */

static void kill_stuck(struct pool_worker *worker)
{
    struct pool *pool = worker->generation->pool;
    uint64_t ms = pool->clock->mono_ms - worker->watch.since_ms;
    struct death_words words = { .now = worker->watch.heartbeat };
    char where[DEATH_PLACE_MAX];

    assert(worker->pid > 0 && worker->killed == POOL_KILL_NONE);
    death_place(pool_worker_protocols(worker), &words, where);
    log_quota_event(&worker->lines, "worker_stuck", LEVEL_ALERT, 0,
        "%s %d was stuck%s%s for %" PRIu64 " %s (worker_watchdog), and is killed",
        pool_worker_title(worker), (int)worker->pid, where[0] != '\0' ? " " : "", where,
        ms < 1000 ? ms : ms / 1000, ms < 1000 ? "ms" : "s");
    worker->killed = POOL_KILL_STUCK;
    pool_deadline_set(worker, POOL_KILL_STUCK);
    signals_send_held(worker->pid, worker->handle, SIGABRT,
        worker->generation->pool->log); /* the core dump shows where it hangs */
}

static void check_heartbeat(struct pool_worker *worker)
{
    struct pool *pool = worker->generation->pool;
    struct pool_watch *watch = &worker->watch;
    uint64_t now;

    /* before accepting, and for an order to end at once, less time is allowed */
    if (worker->phase < POOL_WORKER_ACCEPTING || worker->killed != POOL_KILL_NONE ||
        (worker->due != POOL_KILL_NONE && worker->due != POOL_KILL_DRAIN_LATE))
        return;
    now = heartbeat_now(&shared_slot(pool->shared, worker->slot)->heartbeat);
    /* a signal or a debugger has stopped the process */
    if (watch->since_ms == 0 || now != watch->heartbeat ||
        heartbeat_callback(now) == CALLBACK_WAIT || process_ops->proc_is_stopped(worker->pid))
        *watch = (struct pool_watch) { .heartbeat = now, .since_ms = pool->clock->mono_ms };
    else if (++watch->repeats >= WATCHDOG_REPEATS)
        kill_stuck(worker);
}

void pool_watchdog_expired(struct loop *loop, struct timer *timer)
{
    struct generation *generation = container_of(timer, struct generation, watch);
    uint64_t limit = (uint64_t)generation->cycle->core.worker_watchdog;
    struct pool_worker *worker;

    assert(loop == NULL && limit > 0);
    GENERATION_FOREACH_WORKER (worker, generation)
        check_heartbeat(worker);
    timers_arm(generation->pool->timers, timer, (limit + 1) / 2);
}

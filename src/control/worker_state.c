/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds what a worker does. A worker that is stopped or stuck does not say so itself: its heartbeat
 * has the time since which it has stood still, by the counter of ticks that all processes share. */
#include "control/worker_state.h"

#include "pool/worker.h"
#include "process/process_ops.h"

/* Times of a heartbeat have 48 bits; a time ahead of the present one is nonsense. */
#define TIME_MASK (UINT64_MAX >> 16)

static uint64_t stuck_ms(const struct control *control, uint64_t heartbeat)
{
    uint64_t passed = (ticks_now() - (heartbeat >> 16)) & TIME_MASK;

    if (passed > TIME_MASK / 2 || heartbeat_callback(heartbeat) == CALLBACK_WAIT)
        return 0;
    return ticks_to_us(passed, ticks_rate(&control->ticks)) / 1000;
}

/* Looks whether a serving worker has stood still for long; false: it has not. */
static bool find_stuck(
    const struct control *control, const struct pool_worker *worker, struct worker_state *state)
{
    const struct slot *slot = shared_slot(control->pool->shared, worker->slot);
    struct death_words words = { .now = heartbeat_now(&slot->heartbeat) };

    if (words.now == 0) /* has not begun */
        return false;
    state->stuck_ms = stuck_ms(control, words.now);
    if (state->stuck_ms < WORKER_STUCK_MS)
        return false;
    death_place(worker->generation->cycle, &words, state->where);
    return true;
}

static const char *ended_name(const struct pool_worker *worker)
{
    const struct generation *generation = worker->generation;

    return generation->phase >= GENERATION_REPLACED || generation->pool->ending ? "ended"
                                                                                : "waiting";
}

static bool is_draining(const struct pool_worker *worker)
{
    return worker->generation->phase >= GENERATION_REPLACED ||
           worker->phase == POOL_WORKER_RELEASED; /* by a signal that was not ours */
}

static const char *phase_name(const struct pool_worker *worker)
{
    if (is_draining(worker))
        return "draining";
    if (worker->phase < POOL_WORKER_ACCEPTING)
        return worker->phase == POOL_WORKER_READY ? "ready" : "starting";
    return worker->task == TASK_ASK    ? "resolving"
           : worker->task == TASK_KEEP ? "shaking hands"
                                       : "accepting";
}

/* Finds why a worker that should accept does not. */
static void find_suspended(
    const struct control *control, const struct pool_worker *worker, struct worker_state *state)
{
    const struct slot *slot = shared_slot(control->pool->shared, worker->slot);
    uint32_t accepting = atomic_load_explicit(&slot->load.accepting, memory_order_relaxed);

    if (accepting == SLOT_FULL) {
        state->trouble = WORKER_FULL;
        state->name = "full";
    } else if (accepting == SLOT_PAUSED) {
        state->trouble = WORKER_PAUSED;
        state->name = "suspended";
    }
}

void control_worker_state(
    const struct control *control, const struct pool_worker *worker, struct worker_state *state)
{
    uint64_t now = control->pool->clock->mono_ms;

    *state = (struct worker_state) { .trouble = WORKER_WELL, .name = phase_name(worker) };
    if (worker->pid == 0) {
        state->name = ended_name(worker);
        if (worker->generation == control->pool->serving && !control->pool->ending)
            state->trouble = WORKER_ENDED;
        return;
    }
    if (process_ops->proc_is_stopped(worker->pid)) {
        state->trouble = WORKER_STOPPED;
        state->name = "stopped";
    } else if (worker->task == TASK_SERVE && worker->phase > POOL_WORKER_STARTING &&
               find_stuck(control, worker, state)) {
        state->trouble = WORKER_STUCK;
        state->name = "stuck";
    } else if (is_draining(worker)) {
        if (worker->due == POOL_KILL_DRAIN_LATE && worker->deadline.deadline > now)
            state->drain_ms = worker->deadline.deadline - now;
    } else if (worker->task == TASK_SERVE && worker->phase == POOL_WORKER_ACCEPTING) {
        find_suspended(control, worker, state);
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's life: sets up what it needs in the order that its confinement asks for, turns the
 * loop, and takes everything down again. The phase is changed here alone. */
#include "worker/worker.h"

#include "process/privileges.h"
#include "process/role.h"
#include "sandbox/sandbox.h"
#include "worker/commands.h"
#include "worker/logs.h"
#include "worker/messages.h"
#include "worker/single.h"
#include "worker/threads.h"

#include <assert.h>
#include <bsd/stdlib.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* The exit code, as nginx's, of a worker that could not start. */
#define EXIT_FATAL 2
#define LINGERING_TIMEOUT_MS 5000

void worker_set_phase(struct fb_worker *worker, enum worker_phase phase)
{
    assert(phase > worker->phase && phase <= WORKER_DONE);
    assert(worker->phase != WORKER_STARTING || phase == WORKER_READY || phase == WORKER_ENDING);
    assert(phase != WORKER_DONE || worker->phase == WORKER_ENDING);
    worker->phase = phase;
}

void worker_check(const struct fb_worker *worker)
{
    const struct fb_net *net = &worker->stream.net;

    assert(worker->phase < WORKER_ENDING);
    assert(worker->role == FB_ROLE_WORKER || worker->role == FB_ROLE_SINGLE);
    assert(worker->role == FB_ROLE_WORKER || worker->channel == NULL);
    assert(net->client_n <= net->connection_n);
    assert((worker->phase == WORKER_SERVING) ==
           (worker->accept.phase != ACCEPT_CLOSED && worker->accept.phase != ACCEPT_RELEASED));
    assert((worker->phase == WORKER_DRAINING) == (worker->accept.phase == ACCEPT_RELEASED));
    assert(!fb_timer_is_set(&worker->shutdown) || worker->phase == WORKER_DRAINING);
    assert(!worker->accept.holds_mutex);
    acceptors_check(&worker->accept);
    if (worker->messages != NULL)
        messages_check(worker);
    if (net->loop.mechanism->self != NULL) /* simulated: no other process can write there */
        shared_check(worker->heritage->shared);
}

static void shutdown_expired(struct fb_loop *loop, struct fb_timer *timer)
{
    struct fb_worker *worker = fb_loop_worker(loop);

    assert(timer == &worker->shutdown && worker->phase == WORKER_DRAINING);
    fb_log(&worker->log, FB_NOTICE, 0,
        "worker_shutdown_timeout has passed, %" PRIu32 " connections are closed",
        worker->stream.net.connection_n);
    fb_net_fail_all(&worker->stream.net, FB_DRAINED);
}

static void random_bytes(struct fb_worker *worker, void *p, size_t n)
{
    (void)worker;
    arc4random_buf(p, n);
}

static unsigned listener_slots(const struct fb_cycle *cycle)
{
    const struct fb_listener *listener;
    unsigned n = 3; /* the channel, and what messages need */

    STAILQ_FOREACH (listener, &cycle->stream.listeners, link)
        n += listener->fd_n;
    return n;
}

static int init_stream(struct fb_worker *worker, const struct fb_heritage *heritage)
{
    const struct fb_events_settings *events = &heritage->cycle->events;
    struct fb_net_options options = {
        .connections_max = (uint32_t)events->worker_connections,
        .listeners = listener_slots(heritage->cycle),
        .mechanism = events->mechanism,
        .mechanism_option = events->mechanism_option,
        .wait_mask = fb_signals_wait_mask(),
        .log = &worker->log,
        .counters = &fb_shared_slot(heritage->shared, heritage->slot)->counters,
        .heartbeat = &fb_shared_slot(heritage->shared, heritage->slot)->heartbeat,
        .lingering_timeout = LINGERING_TIMEOUT_MS,
        .memory = heritage->memory,
    };

    if (fb_stream_init(
            &worker->stream, &options, heritage->shared, events->debug, events->debug_n) == -1)
        return -1;
    worker->stream.slot = heritage->slot;
    return 0;
}

int fb_worker_init(struct fb_worker *worker, const struct fb_heritage *heritage, enum fb_role role)
{
    struct fb_cycle *cycle = heritage->cycle;
    struct fb_loop *loop = &worker->stream.net.loop;
    int64_t resolution = cycle->core.timer_resolution;

    assert(role == FB_ROLE_WORKER || role == FB_ROLE_SINGLE);
    assert(heritage->slot.serial != 0 && cycle->events.worker_connections > 0);
    *worker = (struct fb_worker) { .heritage = heritage, .cycle = cycle, .role = role };
    fb_log_init(&worker->log, cycle->core.logs, cycle->core.log_n);
    worker->log.diag = heritage->diag;
    worker->log.diag_session = heritage->diag_session;
    fb_log_update(&worker->log);
    worker->shutdown.expired = shutdown_expired;
    worker->random = random_bytes;
    if (role == FB_ROLE_WORKER && fb_process_confine(cycle, heritage->index, &worker->log) == -1)
        return -1;
    if (role == FB_ROLE_SINGLE)
        fb_process_limit(cycle, &worker->log);
    if (init_stream(worker, heritage) == -1)
        return -1;
    if (fb_accept_init(worker) == -1 || fb_worker_open_channel(worker) == -1 ||
        fb_protocols_start(worker) == -1 ||
        (resolution > 0 && fb_loop_set_resolution(loop, (uint64_t)resolution) == -1)) {
        fb_worker_done(worker);
        return -1;
    }
    if (role == FB_ROLE_WORKER && fb_sandbox_enter(cycle, &worker->log) == -1) {
        fb_worker_done(worker);
        return -1;
    }
    worker->log.diag = NULL;
    fb_log_update(&worker->log);
    worker_set_phase(worker, WORKER_READY);
    return 0;
}

static bool has_drained(const struct fb_worker *worker)
{
    return worker->phase == WORKER_DRAINING && worker->stream.net.connection_n == 0 &&
           fb_threads_busy(worker) == 0;
}

void fb_worker_run(struct fb_worker *worker)
{
    assert(worker->phase >= WORKER_READY && worker->phase < WORKER_DONE);
    for (;;) {
        fb_worker_take_orders(worker);
        if (worker->phase == WORKER_ENDING || has_drained(worker))
            return;
        fb_worker_tend_log(worker);
        fb_worker_turn(worker);
    }
}

void fb_worker_done(struct fb_worker *worker)
{
    struct fb_net *net = &worker->stream.net;

    assert(worker->phase != WORKER_DONE);
    if (worker->phase != WORKER_ENDING)
        worker_set_phase(worker, WORKER_ENDING);
    if (worker->accept.list != NULL)
        fb_accept_close(worker);
    net->released = NULL;
    fb_net_fail_all(net, FB_DRAINED);
    fb_protocols_stop(worker);
    fb_threads_done(worker);
    messages_done(worker);
    fb_timer_del(&net->loop, &worker->shutdown);
    fb_timer_del(&net->loop, &worker->alive);
    fb_timer_del(&net->loop, &worker->log_due);
    fb_timer_del(&net->loop, &worker->stream.drain);
    if (worker->channel != NULL)
        fb_source_close(&net->loop, worker->channel, false);
    assert(net->connection_n == 0 && worker->messages == NULL && worker->threads == NULL);
    fb_stream_done(&worker->stream);
    worker_set_phase(worker, WORKER_DONE);
}

int fb_worker_main(const struct fb_heritage *heritage, enum fb_role role)
{
    struct fb_slot *slot = fb_shared_slot(heritage->shared, heritage->slot);
    struct fb_worker *worker = malloc(sizeof(*worker));

    if (worker == NULL)
        return EXIT_FATAL;
    role_set(role);
    assert(!role_is(FB_ROLE_MASTER) || role == FB_ROLE_SINGLE);
    fb_signals_install(role);
    slot->pid = (uint32_t)getpid();
    if (fb_worker_init(worker, heritage, role) == -1) {
        free(worker);
        return EXIT_FATAL;
    }
    fb_worker_limit_log(worker);
    if (role == FB_ROLE_WORKER) {
        fb_worker_tell(worker, FB_MESSAGE_READY);
    } else {
        fb_accept_open(worker);
        fb_single_serves(worker);
    }
    fb_worker_run(worker);
    fb_log(&worker->log, FB_NOTICE, 0, "exiting");
    fb_worker_done(worker);
    fb_log_tend(&worker->log, true);
    assert(worker->phase == WORKER_DONE);
    free(worker);
    return EXIT_SUCCESS;
}

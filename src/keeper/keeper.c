/* SPDX-License-Identifier: BSD-2-Clause */
/* A keeper's life. The engine, its library and the files of the configuration are loaded before the
 * confinement; a mistake in a file is a failed start, as a worker's. A draining keeper ends with
 * the worker, whose handshakes go on until then. */
#include "keeper/keeper.h"

#include "configuration/logs.h"
#include "event/mechanism.h"
#include "keeper/keeper_channel.h"
#include "keeper/keeper_link.h"
#include "keeper/pair_store.h"
#include "os/descriptor.h"
#include "os/memory.h"
#include "os/process.h"
#include "process/role.h"
#include "sandbox/sandbox.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* The exit code, as nginx's, after a failed start. */
#define KEEPER_FATAL 2

/* Sources: the channel and the link, and the next one while the last is closed. */
#define KEEPER_SOURCES 4

#define DAY_MS 86400000
/* Until a request for a file is tried again, after a full channel. */
#define ASK_AGAIN_MS 20

bool keeper_has_ended(const struct keeper *keeper)
{
    return keeper->phase == KEEPER_ENDING ||
           (keeper->phase == KEEPER_DRAINING && keeper->link == NULL);
}

static int confine_keeper(struct keeper *keeper)
{
    const struct heritage *heritage = keeper->heritage;

    if (heritage->simulated)
        return 0;
    if (process_confine(heritage->cycle, heritage->index, &keeper->log) == -1)
        return -1;
    /* memory here has keys; a change of the user has forbidden dumps, which a limit may allow */
    if (os_process_forbid_dumps() == -1) {
        log_write(&keeper->log, LEVEL_EMERG, errno, "prctl(PR_SET_DUMPABLE) failed");
        return -1;
    }
    return 0;
}

static int init_keeper_loop(struct keeper *keeper)
{
    const struct mechanism *mechanism = mechanism_find("poll");
    const struct loop_options options = {
        .mechanism = mechanism,
        .mechanism_values = mechanism_defaults(mechanism),
        .slots = KEEPER_SOURCES,
        .stride = sizeof(struct source),
        .wait_mask = &signals_state->wait_mask,
        .log = &keeper->log,
    };

    if (loop_init(&keeper->loop, &options) == -1)
        return -1;
    signals_wake_by(keeper->loop.signal_fd);
    return 0;
}

/* Loads the engine with the files of the configuration, which needs the pairs of the generation
 * before no longer. */
static int load_engine(struct keeper *keeper, const struct tls_engine_ops *ops)
{
    keeper->engine = ops->create(&keeper->files, &keeper->log);
    pair_memory_release(&keeper->files.former_pairs);
    if (keeper->engine == NULL)
        return -1;
    keeper->handshakes = tls_handshakes_create(ops, keeper->engine);
    if (keeper->handshakes == NULL)
        log_write(&keeper->log, LEVEL_EMERG, errno, "no memory for handshakes");
    return keeper->handshakes != NULL ? 0 : -1;
}

static void refresh_keeper(struct keeper *keeper)
{
    keeper->files_changed = false; /* later changes are told again */
    if (keeper->channel != NULL)   /* files are opened over the channel alone */
        keeper->ops->refresh(keeper->engine, &keeper->log);
}

static void day_expired(struct loop *loop, struct timer *timer)
{
    struct keeper *keeper = container_of(timer, struct keeper, daily);

    keeper->files_changed = true;
    if (!keeper->files.quiet)
        keeper->ops->remind(keeper->engine, &keeper->log);
    timer_set(loop, timer, DAY_MS);
}

int keeper_init(
    struct keeper *keeper, const struct heritage *heritage, const struct tls_engine_ops *ops)
{
    struct cycle *cycle = heritage->cycle;

    assert(heritage->task == TASK_KEEP && cycle->tls.n > 0);
    *keeper = (struct keeper) {
        .heritage = heritage,
        .heartbeat = &shared_slot(heritage->shared, heritage->slot)->heartbeat,
        .ops = ops,
        .to_master = { .fd = -1 },
    };
    heritage_open_log(heritage, &keeper->log);
    if (confine_keeper(keeper) == -1 || init_keeper_loop(keeper) == -1)
        return -1;
    if (keeper_channel_open(keeper) == -1 || load_engine(keeper, ops) == -1 ||
        (!heritage->simulated && sandbox_enter(cycle, &keeper->log) == -1)) {
        keeper_done(keeper);
        return -1;
    }
    keeper->log.diag = NULL;
    log_update(&keeper->log);
    heartbeat_start(keeper->heartbeat, 0);
    keeper->daily.expired = day_expired;
    timer_set(&keeper->loop, &keeper->daily, DAY_MS);
    if (keeper->phase == KEEPER_STARTING)
        keeper->phase = KEEPER_SERVING;
    channel_end_send(&keeper->to_master, MESSAGE_READY);
    return 0;
}

void keeper_done(struct keeper *keeper)
{
    keeper->phase = KEEPER_ENDING;
    keeper_link_close(keeper);
    if (keeper->wanted.phase == WANTED_CAME)
        descriptor_close(keeper->wanted.fd);
    tls_handshakes_destroy(keeper->handshakes);
    if (keeper->engine != NULL)
        keeper->ops->destroy(keeper->engine);
    keeper_channel_close(keeper);
    timer_del(&keeper->loop, &keeper->log_repair);
    timer_del(&keeper->loop, &keeper->log_flush);
    timer_del(&keeper->loop, &keeper->daily);
    signals_wake_by(-1);
    loop_done(&keeper->loop);
}

/* ---- The turn ---- */

static void log_timer_expired(struct loop *loop, struct timer *timer)
{
    (void)loop;
    (void)timer;
}

/* Asks the master to connect broken logs again. */
static void report_broken_logs(struct keeper *keeper)
{
    struct core_settings *core = &keeper->heritage->cycle->core;

    if (timer_is_set(&keeper->log_repair))
        return;
    keeper->log.broken = false;
    for (unsigned i = 0; i < core_target_n(core); i++)
        if (logs_take_broken(core_target(core, i), &keeper->log))
            channel_end_try(
                &keeper->to_master, &(struct channel_message) { MESSAGE_LOG_BROKEN, i, -1 });
    keeper->log_repair.expired = log_timer_expired;
    timer_set(&keeper->loop, &keeper->log_repair, LOGS_REPAIR_MS);
}

/* Sends lines that wait for a connection, and is called again while some wait. */
static void flush_keeper_log(struct keeper *keeper)
{
    if (timer_is_set(&keeper->log_flush))
        return;
    logs_flush(&keeper->heritage->cycle->core, &keeper->log);
    keeper->log_flush.expired = log_timer_expired;
    if (keeper->log.waiting)
        timer_set(&keeper->loop, &keeper->log_flush, LOGS_FLUSH_MS);
}

/* Tells the master of the certificate with the first end, for the status. */
static void publish_expiry(struct keeper *keeper)
{
    struct slot_expiry *expiry =
        &shared_slot(keeper->heritage->shared, keeper->heritage->slot)->expiry;
    uint32_t file;
    int64_t end;

    if (keeper->ops->first_end == NULL)
        return;
    end = keeper->ops->first_end(keeper->engine, &file);
    atomic_store_explicit(&expiry->file, file, memory_order_relaxed);
    atomic_store_explicit(&expiry->end, end, memory_order_relaxed);
}

/* Takes the commands of signals, with a worker's meaning. */
static void take_keeper_commands(struct keeper *keeper)
{
    bool graceful = keeper->heritage->cycle->core.sigterm_graceful;

    if (signals_take(COMMAND_TERMINATE, NULL))
        keeper_advance(keeper, KEEPER_ENDING);
    if (signals_take(COMMAND_TERM, NULL)) /* the worker gets one as well */
        keeper_advance(keeper, graceful ? KEEPER_DRAINING : KEEPER_ENDING);
    if (signals_take(COMMAND_QUIT, NULL))
        keeper_advance(keeper, KEEPER_DRAINING);
}

/* Asks for a wanted file, and again for the next one that a resumed handshake wants; false: the
 * channel is full. */
static bool ask_and_resume(struct keeper *keeper)
{
    bool asked = keeper_channel_ask(keeper);

    if (!keeper->resumes)
        return asked;
    keeper_link_resume(keeper);
    return keeper_channel_ask(keeper);
}

void keeper_turn(struct keeper *keeper, int timeout)
{
    struct loop *loop = &keeper->loop;
    int due = timers_wait(&loop->timers);

    assert(keeper->phase > KEEPER_STARTING);
    if (signals_pending())
        take_keeper_commands(keeper);
    if (keeper->log.waiting)
        flush_keeper_log(keeper);
    if (keeper->log.broken)
        report_broken_logs(keeper);
    if (keeper->files_changed && !keeper_has_ended(keeper))
        refresh_keeper(keeper);
    if ((!ask_and_resume(keeper) ||
            (keeper->resumes && keeper->link != NULL && keeper->reply == NULL)) &&
        (timeout == -1 || timeout > ASK_AGAIN_MS))
        timeout = ASK_AGAIN_MS;
    if (loop_promote(loop) || keeper->files_changed || keeper_has_ended(keeper))
        timeout = 0;
    else if (timeout == -1 || (due != -1 && due < timeout))
        timeout = due;
    publish_expiry(keeper);
    heartbeat_begin_wait(keeper->heartbeat);
    loop_wait(loop, timeout);
    heartbeat_end_wait(keeper->heartbeat);
    timers_run(&loop->timers);
    loop_run(loop, QUEUE_NORMAL);
    if (loop->wait_error != 0)
        keeper_advance(keeper, KEEPER_ENDING);
}

int keeper_main(const struct heritage *heritage, const struct tls_engine_ops *ops)
{
    struct heartbeat *heartbeat = &shared_slot(heritage->shared, heritage->slot)->heartbeat;
    struct keeper *keeper = os_wiped_alloc(sizeof(*keeper));
    int status = KEEPER_FATAL;
    struct log log;

    role_set(ROLE_WORKER);
    signals_install(ROLE_WORKER);
    if (keeper == NULL) {
        heritage_open_log(heritage, &log);
        log_write(&log, LEVEL_EMERG, errno, "no memory for the keeper");
    } else if (keeper_init(keeper, heritage, ops) == 0) {
        while (!keeper_has_ended(keeper))
            keeper_turn(keeper, -1);
        status = keeper->loop.wait_error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
        keeper_done(keeper);
    }
    heartbeat_set_end(heartbeat, HEARTBEAT_RETURNED, 0);
    os_wiped_free(keeper, sizeof(*keeper));
    return status;
}

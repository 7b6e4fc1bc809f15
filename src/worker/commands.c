/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles commands: messages of the master's channel from the loop, and signals between its turns,
 * never within one. A master that has gone is a command to drain. */
#include "configuration/logs.h"
#include "features/access_log/access_log.h"
#include "process/process_ops.h"
#include "session/idle.h"
#include "systemd/notify.h"
#include "upstream/refresh.h"
#include "worker/accept.h"
#include "worker/messages.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

/* Limit of messages of the master in a turn, before events of clients run. */
#define MESSAGES_A_TURN 64

static void begin_drain(struct worker *worker)
{
    int64_t limit = worker->cycle->core.worker_shutdown_timeout;

    if (worker->phase >= WORKER_DRAINING)
        return;
    worker_set_phase(worker, WORKER_DRAINING);
    log_write(&worker->log, LEVEL_NOTICE, 0, "gracefully shutting down");
    if (worker->role == ROLE_WORKER && worker->heritage->task != TASK_ASK)
        process_ops->set_title("worker process is shutting down", NULL);
    accept_release(worker);
    channel_end_send(&worker->to_master, MESSAGE_RELEASED);
    if (worker->accept.sharing == SHARING_EXCLUSIVE) /* the latest accept may have woken none */
        channel_end_send(&worker->to_master, MESSAGE_RESCAN);
    if (limit > 0)
        timer_set(&worker->stream.net.loop, &worker->shutdown, (uint64_t)limit);
    worker_protocols_drain(worker, (uint64_t)limit);
    session_drain(&worker->stream, (uint64_t)limit);
    access_log_flush(&worker->stream);
}

/* Replaces a log's descriptor by the message's; the message then holds the old descriptor. */
static void exchange_log(struct worker *worker, struct channel_message *message)
{
    struct core_settings *core = &worker->cycle->core;
    struct log_target *target;

    if (message->argument >= core_target_n(core) || message->fd == -1)
        return;
    assert(worker->role == ROLE_WORKER);
    target = core_target(core, message->argument);
    access_log_flush_to(&worker->stream, target);
    message->fd = logs_exchange(target, message->fd);
    worker->log.waiting = worker->log.waiting || log_target_waits(target);
}

static const char *handle_master_message(struct channel_end *end, struct channel_message *message)
{
    struct worker *worker = container_of(end, struct worker, to_master);

    assert(worker->channel != NULL);
    switch ((enum channel_message_kind)message->kind) {
    case MESSAGE_ACCEPT:
        if (worker->phase < WORKER_DRAINING)
            accept_open(worker);
        channel_end_send(&worker->to_master, MESSAGE_ACCEPTING);
        break;
    case MESSAGE_RESCAN:
        accept_rescan(worker);
        break;
    case MESSAGE_LOG_FILE:
        exchange_log(worker, message);
        break;
    case MESSAGE_LOG_LEVEL:
        heritage_override_log(worker->heritage, &worker->log);
        break;
    case MESSAGE_TRIM:
        if (worker->phase == WORKER_DRAINING)
            session_drain_idle(&worker->stream);
        break;
    case MESSAGE_REOPEN:
        access_log_reopen(&worker->stream);
        break;
    case MESSAGE_NAMES:
        refresh_all(&worker->stream.upstreams);
        break;
    case MESSAGE_INBOX:
        messages_open_inbox(worker, message);
        break;
    case MESSAGE_SIBLING_INBOX:
        siblings_open(worker, message);
        break;
    case MESSAGE_SIBLING_GONE:
        siblings_gone(worker, message->argument);
        break;
    case MESSAGE_OTHER:
        messages_greet_other(worker, message->argument);
        break;
    case MESSAGE_LINK:
        worker_tls_connect(worker, message);
        break;
    case MESSAGE_MUTEX_OFF:
        acceptors_leave_mutex(worker);
        break;
    case MESSAGE_LISTENER:
        /* without a descriptor none was left for it: the listener is said to be broken again */
        if (message->fd != -1)
            acceptors_replace_socket(worker, message->argument, message->fd);
        break;
    case MESSAGE_SESSIONS:
        if (message->fd == -1)
            break;
        session_lists_begin(worker, message->fd);
        return NULL;
    default:
        break;
    }
    if (message->fd != -1)
        close(message->fd);
    return NULL; /* the master breaks no rule */
}

static void sending_failed(struct channel_end *end, int error)
{
    struct worker *worker = container_of(end, struct worker, to_master);

    log_write(&worker->log, LEVEL_ALERT, error, "a message to the master could not be sent");
}

static bool send_more_to_master(struct channel_end *end)
{
    return worker_tls_send_lost(container_of(end, struct worker, to_master));
}

static void channel_readable(struct loop *loop, struct source *source)
{
    struct worker *worker = worker_of_loop(loop);
    enum channel_status status;
    const char *rule;

    assert(source == worker->channel);
    status = channel_end_receive(&worker->to_master, MESSAGES_A_TURN, &rule);
    if (status == CHANNEL_DONE || status == CHANNEL_BROKEN) {
        loop_post(loop, &source->events[EVENT_READ], QUEUE_NEXT);
        return;
    }
    source->events[EVENT_READ].ready = false;
    if (status == CHANNEL_CLOSED) {
        log_write(&worker->log, LEVEL_ALERT, 0, "the master process has gone");
        source_close(loop, source, false);
        worker->channel = NULL;
        channel_end_close(&worker->to_master);
        siblings_master_gone(worker);
        begin_drain(worker);
    }
}

int worker_open_channel(struct worker *worker)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = channel_readable } };
    /* clients can cause these often */
    static const struct channel_end_ops end_ops = {
        .handle = handle_master_message,
        .send_more = send_more_to_master,
        .failed = sending_failed,
        .limited = 1u << MESSAGE_RESCAN | 1u << MESSAGE_INBOX_LOST,
        .is_trusted = true,
    };
    struct loop *loop = &worker->stream.net.loop;

    assert(worker->phase == WORKER_STARTING && worker->channel == NULL);
    if (worker->heritage->channel == -1)
        return 0;
    assert(worker->role == ROLE_WORKER);
    worker->channel = worker_source(worker, worker->heritage->channel, &ops);
    if (worker->channel == NULL)
        return worker_fail(worker, 0, "no slot for the channel to the master");
    channel_end_open(&worker->to_master, worker->channel->fd, &end_ops, &loop->timers);
    if (source_arm(loop, worker->channel, EVENT_READ) == -1)
        return worker_fail(worker, errno, "the channel to the master cannot be watched");
    return 0;
}

/* ---- Without a master ---- */

static void notify_alive_expired(struct loop *loop, struct timer *timer)
{
    notify_tell(&worker_of_loop(loop)->log, NOTIFY_ALIVE);
    timer_set(loop, timer, notify_interval() / 2);
}

void worker_notify_serving(struct worker *worker)
{
    assert(worker->role == ROLE_SINGLE && worker->phase == WORKER_SERVING);
    notify_attend(&worker->stream.net.loop.timers, &worker->log);
    notify_status(&worker->log, "Serving: a single process");
    notify_tell(&worker->log, NOTIFY_READY);
    worker->alive.expired = notify_alive_expired;
    if (notify_interval() > 0)
        timer_set(&worker->stream.net.loop, &worker->alive, notify_interval() / 2);
}

/* Does the work of a master for a single process. */
static void take_single_commands(struct worker *worker)
{
    assert(worker->role == ROLE_SINGLE);
    if (signals_take(COMMAND_RELOAD, NULL))
        log_write(&worker->log, LEVEL_ERROR, 0,
            "a reload needs a master process: set \"master_process on\" and start again");
    if (signals_take(COMMAND_UPGRADE, NULL))
        log_write(&worker->log, LEVEL_ERROR, 0,
            "upgrade refused: an upgrade needs a master process, set \"master_process on\" and "
            "start again");
    if (!signals_take(COMMAND_REOPEN, NULL))
        return;
    access_log_reopen(&worker->stream);
    logs_reopen(&worker->cycle->core, &worker->log);
}

/* Takes a command to drain or to end; a single process logs the signal. SIGTERM does either, as
 * `sigterm_shutdown` says, and a second SIGTERM ends at once. The master uses SIGINT: a SIGTERM is
 * for all processes of a container or unit. */
static void take_end(struct worker *worker, enum command command)
{
    bool is_term = command == COMMAND_TERM;
    bool graceful = worker->cycle->core.sigterm_graceful && !worker->term_received;
    enum command meaning = !is_term ? command : graceful ? COMMAND_QUIT : COMMAND_TERMINATE;
    const struct signal_row *s;
    pid_t from;

    if (!signals_take(command, &from))
        return;
    s = signals_find(worker->role, command);
    if (worker->role == ROLE_SINGLE)
        log_write(&worker->log, LEVEL_NOTICE, 0, "signal %d (%s) received from %d, %s", s->number,
            s->name, (int)from, signals_find(worker->role, meaning)->doing);
    worker->term_received = worker->term_received || is_term;
    if (meaning == COMMAND_QUIT)
        begin_drain(worker);
    else if (worker->phase < WORKER_ENDING)
        worker_set_phase(worker, WORKER_ENDING);
}

void worker_take_commands(struct worker *worker)
{
    enum worker_phase before = worker->phase;

    assert(before != WORKER_STARTING && before != WORKER_DONE);
    take_end(worker, COMMAND_TERM);
    take_end(worker, COMMAND_TERMINATE);
    take_end(worker, COMMAND_QUIT);
    if (worker->role != ROLE_SINGLE)
        return;
    if (before < WORKER_DRAINING && worker->phase >= WORKER_DRAINING) {
        notify_tell(&worker->log, NOTIFY_STOPPING);
        notify_status(&worker->log, worker->phase == WORKER_ENDING
                                        ? "Stopping"
                                        : "Draining: the sessions may end by themselves");
    }
    take_single_commands(worker);
}

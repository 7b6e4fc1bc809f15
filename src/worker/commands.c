/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles commands: messages of the master's channel from the loop, and signals between its turns.
 * A master that has gone is a command to drain. */
#include "worker/commands.h"

#include "process/logs.h"
#include "worker/logs.h"
#include "worker/peers.h"
#include "worker/single.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

static void begin_drain(struct fb_worker *worker)
{
    int64_t limit = worker->cycle->core.worker_shutdown_timeout;

    if (worker->phase >= WORKER_DRAINING)
        return;
    worker_set_phase(worker, WORKER_DRAINING);
    fb_log(&worker->log, FB_NOTICE, 0, "gracefully shutting down");
    fb_accept_close(worker);
    fb_worker_tell(worker, FB_MESSAGE_CLOSED);
    if (worker->accept.exclusive) /* a client that came just now may have woken us alone */
        fb_worker_tell(worker, FB_MESSAGE_LOOK);
    if (limit > 0)
        fb_timer_set(&worker->stream.net.loop, &worker->shutdown, (uint64_t)limit);
    fb_stream_drain(&worker->stream, (uint64_t)limit);
}

static void begin_ending(struct fb_worker *worker)
{
    if (worker->phase < WORKER_ENDING)
        worker_set_phase(worker, WORKER_ENDING);
}

static void handle_message(struct fb_worker *worker, struct fb_message *message)
{
    switch ((enum fb_message_kind)message->kind) {
    case FB_MESSAGE_ARM:
        if (worker->phase < WORKER_DRAINING)
            fb_accept_open(worker);
        fb_worker_tell(worker, FB_MESSAGE_ARMED);
        break;
    case FB_MESSAGE_LOOK:
        fb_accept_look(worker);
        break;
    case FB_MESSAGE_REOPEN:
        fb_worker_log_reopened(worker, message);
        break;
    case FB_MESSAGE_PEER:
        peers_open(worker, message);
        break;
    case FB_MESSAGE_GONE:
        peers_gone(worker, message->argument);
        break;
    default:
        break;
    }
    if (message->fd != -1)
        close(message->fd);
}

static void close_channel(struct fb_worker *worker)
{
    fb_source_close(&worker->stream.net.loop, worker->channel, false);
    worker->channel = NULL;
    peers_master_gone(worker);
}

static void channel_readable(struct fb_loop *loop, struct fb_source *source)
{
    struct fb_worker *worker = fb_loop_worker(loop);
    struct fb_message message;
    enum fb_channel_status status;

    assert(source == worker->channel);
    while ((status = fb_channel_receive(source->fd, &message)) == FB_CHANNEL_DONE)
        handle_message(worker, &message);
    source->events[FB_READ].ready = false;
    if (status == FB_CHANNEL_CLOSED) {
        fb_log(&worker->log, FB_ALERT, 0, "the master process has gone");
        close_channel(worker);
        begin_drain(worker);
    }
}

int fb_worker_open_channel(struct fb_worker *worker)
{
    static const struct fb_source_ops ops = { .run = { [FB_READ] = channel_readable } };
    struct fb_loop *loop = &worker->stream.net.loop;

    assert(worker->phase == WORKER_STARTING && worker->channel == NULL);
    if (worker->heritage->channel == -1)
        return 0;
    assert(worker->role == FB_ROLE_WORKER);
    worker->channel = fb_source_get(&loop->sources);
    if (worker->channel == NULL) {
        fb_log(&worker->log, FB_EMERG, 0, "no slot for the channel to the master");
        return -1;
    }
    worker->channel->fd = worker->heritage->channel;
    worker->channel->ops = &ops;
    worker->channel->io = &fb_io_socket;
    if (fb_source_arm(loop, worker->channel, FB_READ) == -1) {
        fb_log(&worker->log, FB_EMERG, errno, "the channel to the master cannot be watched");
        return -1;
    }
    return 0;
}

void fb_worker_tell_with(
    struct fb_worker *worker, enum fb_message_kind kind, uint32_t argument, int fd)
{
    struct fb_message message = { .kind = kind, .argument = argument, .fd = fd };

    if (worker->channel != NULL && fb_channel_send(worker->channel->fd, &message) == -1 &&
        errno != EPIPE) /* a master that has gone is seen by the channel's end */
        fb_log(&worker->log, FB_ALERT, errno, "the master could not be told");
}

void fb_worker_tell(struct fb_worker *worker, enum fb_message_kind kind)
{
    fb_worker_tell_with(worker, kind, 0, -1);
}

/* Does what a master would do for a single process. */
static void take_single_commands(struct fb_worker *worker)
{
    assert(worker->role == FB_ROLE_SINGLE);
    if (fb_order_take(FB_ORDER_RELOAD, NULL))
        fb_log(&worker->log, FB_ERROR, 0,
            "a reload needs a master process: set \"master_process on\" and start again");
    if (fb_order_take(FB_ORDER_UPGRADE, NULL))
        fb_log(&worker->log, FB_ERROR, 0,
            "upgrade refused: it needs a master process, set \"master_process on\" and start "
            "again");
    if (fb_order_take(FB_ORDER_REOPEN, NULL))
        fb_logs_reopen(&worker->cycle->core, &worker->log);
}

/* Takes a signal's command, and logs it in a single process as a master does: with what is done
 * about `meaning`. */
static bool take_signal(struct fb_worker *worker, enum fb_order order, enum fb_order meaning)
{
    const struct fb_signal *s;
    pid_t from;

    if (!fb_order_take(order, &from))
        return false;
    s = fb_signal_of(worker->role, order);
    if (worker->role == FB_ROLE_SINGLE)
        fb_log(&worker->log, FB_NOTICE, 0, "signal %d (%s) received from %d, %s", s->number,
            s->name, (int)from, fb_signal_of(worker->role, meaning)->doing);
    return true;
}

/* Drains or ends as `sigterm_shutdown` says; a second SIGTERM ends at once. The master closes
 * workers by SIGINT: a SIGTERM comes from those who signal all processes of a container or a
 * unit. */
static void take_term(struct fb_worker *worker)
{
    bool gracefully = worker->cycle->core.sigterm_graceful && !worker->term_received;

    if (!take_signal(worker, FB_ORDER_TERM, gracefully ? FB_ORDER_QUIT : FB_ORDER_TERMINATE))
        return;
    worker->term_received = true;
    if (gracefully)
        begin_drain(worker);
    else
        begin_ending(worker);
}

void fb_worker_take_orders(struct fb_worker *worker)
{
    enum worker_phase before = worker->phase;

    if (fb_likely(!fb_order_pending()))
        return;
    assert(before != WORKER_STARTING && before != WORKER_DONE);
    take_term(worker);
    if (take_signal(worker, FB_ORDER_TERMINATE, FB_ORDER_TERMINATE))
        begin_ending(worker);
    if (take_signal(worker, FB_ORDER_QUIT, FB_ORDER_QUIT))
        begin_drain(worker);
    if (worker->role != FB_ROLE_SINGLE)
        return;
    if (before < WORKER_DRAINING && worker->phase >= WORKER_DRAINING)
        fb_single_ends(worker);
    take_single_commands(worker);
}

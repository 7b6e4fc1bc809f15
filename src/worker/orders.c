/* SPDX-License-Identifier: BSD-2-Clause */
/* What a worker is told: by the master's messages, and by signals. */
#include "worker/worker.h"

#include "process/logs.h"

#include <errno.h>
#include <unistd.h>

static void begin_drain(struct fb_worker *worker)
{
    int64_t limit = worker->cycle->core.worker_shutdown_timeout;

    if (worker->draining)
        return;
    worker->draining = true;
    fb_log(&worker->log, FB_NOTICE, 0, "gracefully shutting down");
    fb_accept_close(worker);
    fb_worker_tell(worker, FB_MESSAGE_CLOSED);
    if (worker->accept.exclusive) /* who came just now may have woken us alone */
        fb_worker_tell(worker, FB_MESSAGE_LOOK);
    if (limit > 0)
        fb_timer_set(&worker->stream.net.loop, &worker->shutdown, (uint64_t)limit);
    fb_stream_drain(&worker->stream, (uint64_t)limit);
}

static void obey(struct fb_worker *worker, struct fb_message *message)
{
    switch ((enum fb_message_kind)message->kind) {
    case FB_MESSAGE_ARM:
        if (!worker->draining)
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
        fb_mail_peer(worker, message);
        break;
    case FB_MESSAGE_GONE:
        fb_mail_gone(worker, message->argument);
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
    fb_mail_alone(worker);
}

static void channel_readable(struct fb_loop *loop, struct fb_source *source)
{
    struct fb_worker *worker = fb_loop_worker(loop);
    struct fb_message message;
    enum fb_channel_status status;

    while ((status = fb_channel_receive(source->fd, &message)) == FB_CHANNEL_DONE)
        obey(worker, &message);
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

    if (worker->heritage->channel == -1)
        return 0;
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

/* The role of a single process, which has no master to do it. */
static void take_single_orders(struct fb_worker *worker, bool ends)
{
    if (ends)
        fb_single_ends(worker);
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

/* Takes a signal's order; a single process logs it as a master does. `meaning` is what is done. */
static bool take(struct fb_worker *worker, enum fb_order order, enum fb_order meaning)
{
    const struct fb_signal *s = fb_signal_of(worker->role, order);
    pid_t from;

    if (!fb_order_take(order, &from))
        return false;
    if (worker->role == FB_ROLE_SINGLE)
        fb_log(&worker->log, FB_NOTICE, 0, "signal %d (%s) received from %d, %s", s->number,
            s->name, (int)from, fb_signal_of(worker->role, meaning)->doing);
    return true;
}

/* What `sigterm_shutdown` says; a second one ends at once. The master closes workers by SIGINT: this
 * one comes from those who signal all processes of a container or a unit. */
static void take_term(struct fb_worker *worker)
{
    bool gracefully = worker->cycle->core.sigterm_graceful && !worker->termed;

    if (!take(worker, FB_ORDER_TERM, gracefully ? FB_ORDER_QUIT : FB_ORDER_TERMINATE))
        return;
    worker->termed = true;
    if (gracefully)
        begin_drain(worker);
    else
        worker->ending = true;
}

void fb_worker_take_orders(struct fb_worker *worker)
{
    bool ended = worker->ending || worker->draining;

    take_term(worker);
    if (take(worker, FB_ORDER_TERMINATE, FB_ORDER_TERMINATE))
        worker->ending = true;
    if (take(worker, FB_ORDER_QUIT, FB_ORDER_QUIT))
        begin_drain(worker);
    if (worker->role == FB_ROLE_SINGLE)
        take_single_orders(worker, !ended && (worker->ending || worker->draining));
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/conn.h"

#include "net/address.h"
#include "net/conn_private.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every idle connection costs one of these and its protocol's state, and nothing else. */
static_assert(sizeof(struct fb_conn) <= 224, "an idle connection has become dearer");

#define SCRATCH_SIZE (64 * 1024)

static const struct fb_source_ops conn_ops = {
    .run = { [FB_READ] = fb_conn_readable, [FB_WRITE] = fb_conn_progress },
};

int fb_net_init(struct fb_net *net, const struct fb_net_options *options)
{
    struct fb_loop_options loop = {
        .mechanism = options->mechanism,
        .mechanism_option = options->mechanism_option,
        .slots = options->connections_max + options->listeners,
        .stride = sizeof(struct fb_conn),
        .wait_mask = options->wait_mask,
        .log = options->log,
    };

    *net = (struct fb_net) {
        .log = options->log,
        .counters = options->counters,
        .connections_max = options->connections_max,
        .lingering_timeout = options->lingering_timeout,
        .scratch_size = SCRATCH_SIZE,
    };
    if (fb_loop_init(&net->loop, &loop) == -1)
        return -1;
    net->scratch = malloc(SCRATCH_SIZE);
    if (net->scratch == NULL) {
        fb_log(net->log, FB_EMERG, errno, "no memory for the worker's buffer");
        fb_loop_done(&net->loop);
        return -1;
    }
    return 0;
}

void fb_net_done(struct fb_net *net)
{
    assert(net->connection_n == 0);
    fb_chunks_trim(net);
    free(net->scratch);
    fb_loop_done(&net->loop);
}

static void conn_expired(struct fb_loop *loop, struct fb_timer *timer)
{
    struct fb_conn *conn = fb_container(timer, struct fb_conn, timer);

    (void)loop;
    if (conn->lingering)
        fb_conn_fail(conn, FB_TIMED_OUT);
    else
        conn->ops->expired(conn);
    fb_net_settle(conn->net);
}

static void remember_peer(struct fb_conn *conn, const struct sockaddr *peer)
{
    if (peer->sa_family == AF_INET)
        memcpy(&conn->peer.in, peer, sizeof(conn->peer.in));
    else if (peer->sa_family == AF_INET6)
        memcpy(&conn->peer.in6, peer, sizeof(conn->peer.in6));
    else
        conn->peer.family = AF_UNIX;
}

struct fb_conn *fb_conn_create(struct fb_net *net, int fd, const struct sockaddr *peer,
    const struct fb_conn_ops *ops, void *owner)
{
    struct fb_loop *loop = &net->loop;
    struct fb_source *source;
    struct fb_conn *conn;

    if (net->connection_n == net->connections_max)
        return NULL;
    source = fb_source_get(&loop->sources);
    if (source == NULL)
        return NULL;

    conn = fb_container(source, struct fb_conn, source);
    source->fd = fd;
    source->ops = &conn_ops;
    source->io = loop->mechanism->io;
    source->events[FB_WRITE].ready = true; /* a new socket takes output */
    conn->timer.expired = conn_expired;
    conn->net = net;
    conn->ops = ops;
    conn->owner = owner;
    conn->number = ++net->last_number;
    conn->opening = 1;
    remember_peer(conn, peer);

    net->connection_n++;
    fb_count(net->counters, FB_ACTIVE, 1);
    fb_loop_post(loop, &source->events[FB_READ], FB_QUEUE_NORMAL);
    return conn;
}

void fb_conn_touch(struct fb_conn *conn)
{
    struct fb_loop *loop = &conn->net->loop;
    struct fb_event *event = &conn->source.events[FB_WRITE];

    /* not where the mechanism may have posted it: what is borrowed is lent no longer then */
    fb_loop_unpost(loop, event);
    fb_loop_post(loop, event, FB_QUEUE_SETTLE);
}

void fb_conn_update_reading(struct fb_conn *conn)
{
    struct fb_loop *loop = &conn->net->loop;

    if (!fb_conn_may_read(conn)) {
        fb_source_disarm(loop, &conn->source, FB_READ);
    } else if (fb_source_arm(loop, &conn->source, FB_READ) == -1) {
        fb_conn_log(conn, FB_ALERT, errno, "the connection cannot be watched");
        fb_conn_fail(conn, FB_NO_MEMORY);
    } else if (conn->redeliver) {
        fb_loop_post(loop, &conn->source.events[FB_READ], FB_QUEUE_NEXT);
    }
}

void fb_conn_stop(struct fb_conn *conn)
{
    conn->stopped = 1;
    fb_conn_update_reading(conn);
}

void fb_conn_resume(struct fb_conn *conn)
{
    if (!conn->stopped || conn->closing || conn->failed != 0)
        return;
    conn->stopped = 0;
    if (conn->opening)
        return;
    conn->redeliver = 1;
    fb_conn_update_reading(conn);
}

void fb_conn_close(struct fb_conn *conn)
{
    if (conn->closing || conn->failed != 0)
        return;
    conn->closing = 1;
    fb_conn_update_reading(conn);
    fb_conn_touch(conn);
}

void fb_conn_fail(struct fb_conn *conn, fb_reason reason)
{
    if (conn->failed != 0)
        return;
    conn->failed = reason;
    fb_conn_touch(conn);
}

void fb_net_settle(struct fb_net *net)
{
    if (net->settling) /* the callback was run while settling: the outer call goes on */
        return;
    net->settling = true;
    fb_loop_run(&net->loop, FB_QUEUE_SETTLE);
    net->settling = false;
}

void fb_net_fail_all(struct fb_net *net, fb_reason reason)
{
    struct fb_source_table *table = &net->loop.sources;

    for (uint32_t i = 0; i < table->used_n; i++) {
        struct fb_source *source = fb_source_at(table, i);

        if (source->in_use && source->ops == &conn_ops)
            fb_conn_fail(fb_container(source, struct fb_conn, source), reason);
    }
    fb_net_settle(net);
}

fb_reason fb_conn_reason(int error)
{
    switch (error) {
    case ECONNRESET:
    case EPIPE:
        return FB_RESET;
    case ETIMEDOUT:
        return FB_TIMED_OUT;
    case ENOMEM:
    case ENOBUFS:
        return FB_NO_MEMORY;
    default:
        return FB_IO_ERROR;
    }
}

/* The gauges tell the states apart; waiting is what neither reads nor writes. */
static void recount(struct fb_conn *conn, enum fb_conn_state now)
{
    static const int gauges[] = {
        [FB_CONN_WAITING] = -1, [FB_CONN_READING] = FB_READING, [FB_CONN_WRITING] = FB_WRITING
    };

    if (conn->counted == now)
        return;
    if (gauges[conn->counted] != -1)
        fb_count(conn->net->counters, (enum fb_counter)gauges[conn->counted], -1);
    if (gauges[now] != -1)
        fb_count(conn->net->counters, (enum fb_counter)gauges[now], 1);
    conn->counted = now;
}

void fb_conn_count(struct fb_conn *conn)
{
    if (conn->unsent > 0)
        recount(conn, FB_CONN_WRITING);
    else
        recount(conn, conn->in != NULL ? FB_CONN_READING : FB_CONN_WAITING);
}

/* The owner's part ends: after this only the descriptor is left. */
static void detach_owner(struct fb_conn *conn, fb_reason reason)
{
    struct fb_net *net = conn->net;

    fb_timer_del(&net->loop, &conn->timer);
    fb_conn_drop_output(conn);
    if (conn->in != NULL)
        fb_chunk_free(net, conn->in);
    conn->in = NULL;
    recount(conn, FB_CONN_WAITING);
    if (!conn->opening)
        conn->ops->closed(conn, reason);
}

static void end(struct fb_conn *conn, fb_reason reason)
{
    struct fb_net *net = conn->net;

    if (!conn->lingering)
        detach_owner(conn, reason);
    fb_timer_del(&net->loop, &conn->timer);
    fb_conn_debug(conn, "closed, reason %d", (int)reason);
    fb_source_close(&net->loop, &conn->source, reason == FB_ABORTED);
    net->connection_n--;
    fb_count(net->counters, FB_ACTIVE, -1);
    if (net->released != NULL)
        net->released(net);
}

/* Whether the peer's bytes lie unread in the kernel, which would make closing a reset. */
static bool input_is_pending(struct fb_conn *conn)
{
    uint8_t bytes[512]; /* not the scratch buffer: somebody's lent bytes may still lie there */
    struct fb_span span = { bytes, sizeof(bytes) };

    if (conn->eof)
        return false;
    return conn->source.io->recv(&conn->source, &span).status == FB_IO_DONE;
}

/* All output has left. */
static void finish(struct fb_conn *conn)
{
    struct fb_loop *loop = &conn->net->loop;

    if (!input_is_pending(conn)) {
        end(conn, FB_FINISHED);
        return;
    }
    conn->source.io->shutdown(&conn->source);
    detach_owner(conn, FB_FINISHED);
    conn->lingering = 1;
    conn->source.events[FB_READ].ready = true; /* the probe has not emptied it */
    if (fb_source_arm(loop, &conn->source, FB_READ) == -1)
        end(conn, FB_NO_MEMORY);
    else
        fb_timer_set(loop, &conn->timer, conn->net->lingering_timeout);
}

/* Reading pauses while too much output waits, and the owner hears when it has left. */
static void press_back(struct fb_conn *conn)
{
    if (!conn->held && conn->unsent > FB_HIGH_WATER) {
        conn->held = 1;
        fb_conn_update_reading(conn);
    } else if (conn->held && conn->unsent < FB_LOW_WATER) {
        conn->held = 0;
        fb_conn_update_reading(conn);
        if (!conn->opening && !conn->closing)
            conn->ops->writable(conn);
    }
}

/* Does what callbacks have asked for, and goes on when the peer has taken output. */
void fb_conn_progress(struct fb_loop *loop, struct fb_source *source)
{
    struct fb_conn *conn = fb_container(source, struct fb_conn, source);
    struct fb_net *net = conn->net;
    size_t unsent = conn->unsent;

    if (conn->failed == 0 && fb_conn_flush(conn)) {
        if (conn->unsent < unsent)
            conn->ops->moved(conn);
        if (conn->out == NULL) {
            fb_source_disarm(loop, source, FB_WRITE);
        } else if (fb_source_arm(loop, source, FB_WRITE) == -1) {
            conn->failed = FB_NO_MEMORY;
        }
        press_back(conn);
    }
    if (conn->failed != 0) {
        end(conn, (fb_reason)conn->failed);
    } else if (conn->closing && conn->out == NULL && !conn->lingering) {
        finish(conn);
    } else {
        fb_conn_count(conn);
    }
    fb_net_settle(net);
}

void fb_conn_vlog(
    struct fb_conn *conn, enum fb_level level, int error, const char *format, va_list args)
{
    char context[512], client[FB_ADDRESS_TEXT];
    struct fb_address address = { .length = 0 };
    struct fb_log_line line = {
        .level = level,
        .error = error,
        .connection = conn->number,
        .context = context,
        .force = conn->debug,
    };
    size_t n;

    memcpy(&address.any, &conn->peer, sizeof(conn->peer));
    n = (size_t)snprintf(
        context, sizeof(context), ", client: %s", fb_address_format(&address, false, client));
    conn->ops->describe(conn, context + n, sizeof(context) - n);
    fb_log_vwrite(conn->net->log, &line, format, args);
}

void fb_conn_log(struct fb_conn *conn, enum fb_level level, int error, const char *format, ...)
{
    va_list args;

    if (level > conn->net->log->level && !conn->debug)
        return;
    va_start(args, format);
    fb_conn_vlog(conn, level, error, format, args);
    va_end(args);
}

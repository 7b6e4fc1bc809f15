/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/conn.h"

#include "net/address.h"
#include "net/conn_private.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Every idle connection costs one of these and its protocol's state, and nothing else. */
static_assert(sizeof(struct fb_conn) <= 264, "an idle connection has become dearer");

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
        .memory = options->memory != NULL ? options->memory : &fb_memory_plain,
    };
    net->heartbeat = options->heartbeat != NULL ? options->heartbeat : &net->own_heartbeat;
    if (fb_loop_init(&net->loop, &loop) == -1)
        return -1;
    net->scratch = fb_memory_alloc(net->memory, SCRATCH_SIZE);
    if (net->scratch == NULL) {
        fb_log(net->log, FB_EMERG, errno, "no memory for the worker's buffer");
        fb_loop_done(&net->loop);
        return -1;
    }
    return 0;
}

void fb_net_done(struct fb_net *net)
{
    assert(net->connection_n == 0 && net->dropped == NULL);
    fb_chunks_trim(net);
    fb_pipes_trim(net);
    fb_memory_release(net->memory, net->scratch);
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

struct fb_conn *fb_conn_take(
    struct fb_net *net, const struct sockaddr *peer, const struct fb_conn_ops *ops, void *owner)
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
    source->ops = &conn_ops;
    source->io = loop->mechanism->io;
    source->io_state = loop->mechanism_state;
    conn->timer.expired = conn_expired;
    conn->net = net;
    conn->ops = ops;
    conn->owner = owner;
    conn->number = ++net->last_number;
    conn->opening = 1;
    remember_peer(conn, peer);
    net->connection_n++;
    return conn;
}

struct fb_conn *fb_conn_create(struct fb_net *net, int fd, const struct sockaddr *peer,
    const struct fb_conn_ops *ops, void *owner)
{
    struct fb_conn *conn = fb_conn_take(net, peer, ops, owner);

    if (conn == NULL)
        return NULL;
    conn->source.fd = fd;
    net->client_n++;
    fb_count(net->counters, FB_ACTIVE, 1);
    fb_conn_established(conn);
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
    if (conn->opening || conn->connecting)
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

void fb_conn_keep(struct fb_conn *conn)
{
    if (conn->closing || conn->failed != 0)
        return;
    conn->keeping = !conn->connecting && !conn->opening && !conn->shutting && conn->pipe == NULL;
    fb_conn_close(conn);
}

void fb_conn_shutdown(struct fb_conn *conn)
{
    if (!fb_conn_may_write(conn))
        return;
    conn->shutting = 1;
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
    do {
        fb_loop_run(&net->loop, FB_QUEUE_SETTLE);
        fb_chunks_tell(net);
    } while (!TAILQ_EMPTY(&net->loop.queues[FB_QUEUE_SETTLE]));
    net->settling = false;
}

void fb_net_each(struct fb_net *net, void (*visit)(struct fb_conn *conn, void *arg), void *arg)
{
    struct fb_source_table *table = &net->loop.sources;

    for (uint32_t i = 0; i < table->used_n; i++) {
        struct fb_source *source = fb_source_at(table, i);

        if (source->in_use && source->ops == &conn_ops)
            visit(fb_container(source, struct fb_conn, source), arg);
    }
    fb_net_settle(net);
}

void fb_net_restart(struct fb_net *net, struct fb_timer *timer, uint64_t ms)
{
    if (ms < (uint64_t)10 * FB_TIMER_LAZY_MS)
        fb_timer_del(&net->loop, timer);
    fb_timer_set(&net->loop, timer, ms);
}

static void fail_one(struct fb_conn *conn, void *reason)
{
    fb_conn_fail(conn, *(fb_reason *)reason);
}

void fb_net_fail_all(struct fb_net *net, fb_reason reason)
{
    fb_net_each(net, fail_one, &reason);
}

void fb_conn_vlog(
    struct fb_conn *conn, enum fb_level level, int error, const char *format, va_list args)
{
    char client[FB_ADDRESS_TEXT];
    struct fb_address address = { .length = 0 };
    struct fb_log_line line = {
        .level = level,
        .error = error,
        .connection = conn->number,
        .force = conn->debug,
    };

    memcpy(&address.any, &conn->peer, sizeof(conn->peer));
    if (!conn->outgoing)
        line.client = fb_address_format(&address, false, client);
    conn->ops->describe(conn, &line, client);
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

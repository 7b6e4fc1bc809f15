/* SPDX-License-Identifier: BSD-2-Clause */
/* The connections of a worker together: set up, visited, failed, checked. Never looks into one
 * connection's buffers. Invariant: a slot whose phase is not CONN_FREE is a connection's. */
#include "net/net.h"

#include "net/conn_pipe.h"
#include "os/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Numbers of connections that a worker takes at a time, unless they have to follow each other, so
 * that the word that all workers count in is not written for each client. */
#define NUMBERS 64

static bool has_come(const struct fb_conn *conn)
{
    return conn != NULL && (loop_will_run(&conn->source.events[EVENT_READ]) ||
                               loop_will_run(&conn->source.events[EVENT_WRITE]));
}

static void run_what_has_come(struct fb_conn *conn)
{
    struct event *events = conn->source.events;

    if (loop_will_run(&events[EVENT_WRITE]))
        loop_run_early(&conn->net->loop, &events[EVENT_WRITE]);
    if (loop_will_run(&events[EVENT_READ])) /* a connection that is open now begins with it */
        loop_run_early(&conn->net->loop, &events[EVENT_READ]);
}

/* Whether a deadline that was reached holds no more once what has come is handled, at the other end
 * of a pipe too: a worker that has stood still does not blame its peers. */
static bool is_put_off(struct fb_conn *conn)
{
    struct fb_conn *other = conn->pipe != NULL ? conn_pipe_other(conn) : NULL;
    uint32_t deadline;

    if (!has_come(conn) && !has_come(other))
        return false;
    conn_deadline_set(conn, 1); /* handlers may change or clear it */
    deadline = conn->deadline;
    run_what_has_come(conn);
    if (other != NULL)
        run_what_has_come(other);
    if (!conn->limited || conn->deadline != deadline)
        return true;
    conn_deadline_clear(conn);
    return false;
}

/* The deadline of a connection, which has none any more, was reached. */
static void expire_conn(struct fb_conn *conn)
{
    struct net *net = conn->net;

    assert(conn->phase != CONN_FREE && !conn->limited);
    if (is_put_off(conn))
        return;
    conn_trace(conn, "deadline has come");
    if (conn_is_owned(conn))
        conn->ops->expired(conn);
    else
        conn_fail(conn, FB_TIMED_OUT);
    net_flush(net);
}

int net_init(struct net *net, const struct net_options *options)
{
    struct loop_options loop = {
        .mechanism = options->mechanism,
        .mechanism_values = options->mechanism_values,
        .slots = options->connections_max + NET_OVERDRAFT + options->listeners,
        .stride = sizeof(struct fb_conn),
        .wait_mask = options->wait_mask,
        .log = options->log,
    };

    assert(options->log != NULL && options->connections_max > 0);
    assert(options->counters != NULL && options->heartbeat != NULL);
    *net = (struct net) {
        .log = options->log,
        .counters = options->counters,
        .heartbeat = options->heartbeat,
        .connections_max = options->connections_max,
        .spare_fd = -1,
        .numbers = options->numbers,
        .numbers_n = options->numbers_in_a_row ? 1 : NUMBERS,
        .lingering_timeout = options->lingering_timeout,
        .unfiltered = options->unfiltered,
        .stopped.timer.expired = conn_stopped_expired,
        .scratch_size = NET_SCRATCH,
        .memory = options->memory != NULL ? options->memory : &memory_plain,
    };
    chunk_pool_init(&net->chunks, net->memory);
    spares_init(&net->pipes, net->memory, sizeof(struct conn_pipe));
    conn_wheel_init(&net->wheel, expire_conn);
    if (loop_init(&net->loop, &loop) == -1)
        return -1;
    net->scratch = memory_alloc(net->memory, NET_SCRATCH);
    if (net->scratch == NULL) {
        log_write(net->log, LEVEL_EMERG, errno, "no memory for the worker's buffer");
        loop_done(&net->loop);
        return -1;
    }
    return 0;
}

COLD void net_take_numbers(struct net *net)
{
    assert(net->last_number == net->number_end);
    if (net->numbers != NULL) /* any worker may write there: a number names lines, and no more */
        net->last_number =
            atomic_fetch_add_explicit(net->numbers, net->numbers_n, memory_order_relaxed);
    net->number_end = net->last_number + net->numbers_n;
}

static void close_spare_pipes(struct net *net)
{
    while (net->spare_pipe_n > 0) {
        struct pipe_ends *ends = &net->spare_pipes[--net->spare_pipe_n];

        close(ends->read);
        close(ends->write);
    }
}

bool net_keep_spare(struct net *net)
{
    if (net->spare_fd != -1)
        return true;
    net->spare_fd = descriptor_socket(AF_INET, SOCK_STREAM, O_NONBLOCK);
    if (net->spare_fd != -1)
        return true;
    if (errno == EMFILE || errno == ENFILE)
        return false;
    net->spare_fd = NET_NO_SPARE;
    return true;
}

bool net_free_spare(struct net *net)
{
    if (net->spare_fd < 0)
        return false;
    close(net->spare_fd);
    net->spare_fd = -1;
    return true;
}

void net_done(struct net *net)
{
    assert(net->connection_n == 0 && net->client_n == 0 && !net->flushing);
    conn_wheel_done(net);
    timer_del(&net->loop, &net->stopped.timer);
    chunk_pool_done(&net->chunks);
    spares_done(&net->pipes);
    close_spare_pipes(net);
    net_free_spare(net);
    memory_release(net->memory, net->scratch);
    loop_done(&net->loop);
}

struct fb_conn *net_conn_at(const struct net *net, uint32_t index)
{
    struct source *source = source_at(&net->loop.sources, index);
    struct fb_conn *conn = container_of(source, struct fb_conn, source);

    /* a listener's slot is zero behind its source: CONN_FREE */
    return source->in_use && conn->phase != CONN_FREE ? conn : NULL;
}

struct fb_conn *net_next_conn(const struct net *net, uint32_t *index)
{
    struct fb_conn *conn = NULL;

    while (conn == NULL && *index < net->loop.sources.used_n)
        conn = net_conn_at(net, (*index)++);
    return conn;
}

void net_each(struct net *net, void (*visit)(struct fb_conn *conn, void *arg), void *arg)
{
    struct fb_conn *conn;
    uint32_t index = 0;

    while ((conn = net_next_conn(net, &index)) != NULL)
        visit(conn, arg);
    net_flush(net);
}

static void fail_one(struct fb_conn *conn, void *reason)
{
    conn_fail(conn, *(fb_reason *)reason);
    conn_mark_dirty(conn); /* a failed one, whose flush was left to the next turn, too */
}

void net_fail_all(struct net *net, fb_reason reason)
{
    net_each(net, fail_one, &reason);
}

void net_check(const struct net *net)
{
    const struct fb_conn *conn;
    uint32_t index = 0, n = 0, clients = 0, timed = 0;

    while ((conn = net_next_conn(net, &index)) != NULL) {
        assert(conn->net == net);
        conn_check(conn);
        n++;
        clients += !conn->outgoing;
        timed += conn->timed.prev != 0;
    }
    assert(n == net->connection_n && n <= net->connections_max + NET_OVERDRAFT);
    assert(clients == net->client_n);
    assert(net->spare_pipe_n <= NET_SPARE_PIPES);
    assert(net->borrower == NULL || net->borrowed.n > 0);
    chunk_pool_check(&net->chunks);
    spares_check(&net->pipes);
    conn_wheel_check(net, timed);
    if (net->flushing)
        return;
    assert(TAILQ_EMPTY(&net->loop.queues[QUEUE_FLUSH]));
    assert(net->chunks.released == NULL);
}

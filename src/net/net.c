/* SPDX-License-Identifier: BSD-2-Clause */
/* The connections of a worker: set up, flushed after each callback, visited, failed, checked. Never
 * looks into buffers but to check. Invariant: no connection borrows output after the flush. */
#include "net/net.h"

#include "net/conn_deadline.h"
#include "net/conn_direction.h"
#include "net/conn_flush.h"
#include "net/conn_output.h"
#include "os/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Numbers of connections that a worker takes at once: the shared counter is written less often. */
#define NUMBERS 64
/* Rounds of a flush: a round releases memory, whose owners may write more. */
#define FLUSHES_A_TURN 8

/* ---- The flush ---- */

/* Sends borrowed output where no other waits; else, and after an incomplete send, leaves the work
 * to conn_flush(), as for an armed event: more than to send may be due. */
static ALWAYS_INLINE void send_borrowed(struct net *net)
{
    struct fb_conn *conn = net->borrower;
    const struct event *writing = &conn->source.events[EVENT_WRITE];
    struct io_result result;

    if (unlikely(!conn_can_send(conn) || conn->write != CONN_WRITE_ON || conn->out != NULL ||
                 !writing->ready || writing->armed ||
                 (conn->pipe != NULL && !conn_pipe_flows(conn)))) {
        conn_mark_dirty(conn);
        return;
    }
    assert(net->borrowed.n == conn->unsent);
    net->pieces[0] = (struct iovec) { (uint8_t *)net->borrowed.p, net->borrowed.n };
    result = conn->source.io->send(&conn->source, net->pieces, 1);
    if (unlikely(result.status != IO_DONE || result.n != net->borrowed.n || conn->source.held)) {
        conn_note_sent(conn, result, net->borrowed.n);
        conn_mark_dirty(conn);
        return;
    }
    conn_trace(conn, "sent %zu of %zu bytes", result.n, result.n);
    net->borrower = NULL;
    conn->unsent = 0;
    conn_count_sent(conn, result.n);
    conn_note_moved(conn);
}

/* Leaves to the next turn what callbacks of the flush mark dirty again and again. */
static COLD void postpone_dirty(struct net *net)
{
    struct event *event;

    while ((event = TAILQ_FIRST(&net->loop.queues[QUEUE_FLUSH])) != NULL) {
        struct fb_conn *conn = container_of(event, struct fb_conn, source.events[EVENT_WRITE]);

        conn_own_output(conn);
        if ((conn->out != NULL || conn->source.held) &&
            conn->source.fd != -1 && /* -1: connect() is to be tried again */
            source_arm(&net->loop, &conn->source, EVENT_WRITE) == -1)
            conn_fail(conn, FB_NO_MEMORY);
        conn_count(conn);
        conn_postpone_flush(conn);
    }
}

/* Flushes the dirty connections. Callbacks of the flush are lent no input, and never borrow. */
static NOINLINE void flush_dirty(struct net *net)
{
    struct loop *loop = &net->loop;
    size_t lent = net->lent.n;
    struct event *event;
    int rounds = 0;

    assert(!net->flushing);
    net->flushing = true;
    net->lent.n = 0;
    for (;;) {
        while ((event = TAILQ_FIRST(&loop->queues[QUEUE_FLUSH])) != NULL) {
            assert(event->direction == EVENT_WRITE && event->queue == QUEUE_FLUSH);
            loop_unpost(loop, event);
            conn_flush(container_of(event, struct fb_conn, source.events[EVENT_WRITE]));
        }
        if (likely(net->chunks.released == NULL))
            break;
        chunk_pool_run_releases(&net->chunks, net->heartbeat);
        if (++rounds == FLUSHES_A_TURN) {
            postpone_dirty(net);
            break;
        }
    }
    net->lent.n = lent; /* for checks: the owner has a connection's input */
    net->flushing = false;
}

void net_flush(struct net *net)
{
    if (unlikely(net->flushing)) /* a callback of the flush has called; the outer call goes on */
        return;
    if (likely(net->borrower != NULL))
        send_borrowed(net);
    if (unlikely(!TAILQ_EMPTY(&net->loop.queues[QUEUE_FLUSH]) || net->chunks.released != NULL))
        flush_dirty(net);
    if (DEBUG_BUILD)
        net_check(net);
}

/* ---- Timers ---- */

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
    if (loop_will_run(&events[EVENT_READ])) /* a newly opened connection begins with READ */
        loop_run_early(&conn->net->loop, &events[EVENT_READ]);
}

/* Whether reported events of either end of a pipe make a reached deadline void: a worker that stood
 * still does not blame peers. */
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

/* The deadline of a connection was reached, and is removed by now. */
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

static void stopped_expired(struct loop *loop, struct timer *timer)
{
    struct net *net = net_of_loop(loop);

    assert(timer == &net->stopped.timer);
    (void)timer;
    conn_check_all_stopped(net);
    net_flush(net);
}

/* ---- All connections of a worker ---- */

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
        .stopped.timer.expired = stopped_expired,
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
    while (net->spare_pipe_n > 0) {
        close(net->spare_pipes[--net->spare_pipe_n].read);
        close(net->spare_pipes[net->spare_pipe_n].write);
    }
    net_free_spare(net);
    memory_release(net->memory, net->scratch);
    loop_done(&net->loop);
}

struct fb_conn *net_next_conn(const struct net *net, uint32_t *index)
{
    struct fb_conn *conn = NULL;

    while (conn == NULL && *index < net->loop.sources.used_n)
        conn = conn_at_index(net, (*index)++);
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
    conn_mark_dirty(conn); /* for failed connections, too, with a flush left to the next turn */
}

void net_fail_all(struct net *net, fb_reason reason)
{
    net_each(net, fail_one, &reason);
}

/* ---- Checks ---- */

static size_t sum_output(const struct fb_conn *conn)
{
    const struct chunk *chunk = conn->out;
    size_t n = conn->net->borrower == conn ? conn->net->borrowed.n : 0;

    if (chunk == NULL)
        return n;
    do {
        chunk_check(chunk);
        n += chunk_length(chunk);
        chunk = chunk->next;
    } while (chunk != conn->out);
    return n;
}

static void check_conn_pipe(const struct fb_conn *conn)
{
    const struct conn_pipe *pipe = conn_pipe_of(conn);
    const struct conn_direction *direction;

    CHECK_KIND(pipe, CONN_PIPE_KIND);
    assert(conn->by_pipe == (conn->pipe->from.splices || pipe->limits != NULL));
    assert(!conn_throttle_waits(conn) || conn->read != CONN_READ_ON || !conn_is_active(conn));
    direction = conn_direction_to(conn);
    assert((direction->buffered > 0) <= (direction->kernel.read != -1));
    assert(conn->pipe == &pipe->ends[conn_pipe_index(conn)]);
    assert(conn_pipe_other(conn) == NULL || conn_pipe_of(conn_pipe_other(conn)) == pipe);
    assert(pipe->timeout > 0 || pipe->timed == CONN_PIPE_UNTIMED);
    assert(pipe->timed != conn_pipe_index(conn) || conn->limited || conn_has_failed(conn));
}

static void check_net_conn(const struct fb_conn *conn)
{
    const struct event *events = conn->source.events;
    bool within = conn->net->flushing || conn->net->lent.n > 0;

    assert(conn->source.in_use && conn->phase != CONN_FREE && conn->phase < CONN_PHASES);
    assert(conn->ops != NULL);
    assert((conn->reason != 0) == conn_has_failed(conn) || conn->phase == CONN_ENDING);
    assert(conn->outgoing || !conn_is_connecting(conn));
    assert(conn->unsent == sum_output(conn));
    if (conn->in != NULL) {
        chunk_check(conn->in);
        assert(conn->in->kind == CHUNK_OWN && chunk_length(conn->in) > 0);
    }
    assert(!conn->paused || (conn->unsent >= CONN_LOW_WATER && conn->pipe == NULL));
    assert(!conn->unwritable || conn->paused);
    assert(conn->write != CONN_WRITE_ENDED || conn->out == NULL);
    assert(!conn->outgoing || conn->counted == CONN_WAITING);
    assert(conn->outgoing || within || conn->counted == conn_activity(conn));
    if (conn->pipe != NULL)
        check_conn_pipe(conn);
    else
        assert(!conn->by_pipe);
    if (!conn_is_owned(conn)) { /* `closed` has run */
        assert(!conn->owner_knows && conn->in == NULL && conn->out == NULL && conn->pipe == NULL);
        assert(conn->write == CONN_WRITE_ENDED);
        assert(conn->phase == CONN_LINGERED || conn->limited);
        assert((conn->phase == CONN_LINGERED) == (conn->reason != 0));
    }
    assert(conn->owner_knows || conn->phase != CONN_OPEN);
    if (conn->phase == CONN_OPEN && !within) {
        assert(events[EVENT_READ].armed == conn_may_read(conn));
        assert((conn->out == NULL && !conn->source.held) || events[EVENT_WRITE].armed);
    }
    assert(conn->phase != CONN_KEEPING || (conn->outgoing && conn->pipe == NULL));
    assert(!conn_is_connecting(conn) || (conn->received == 0 && conn->sent == 0));
}

void net_check(const struct net *net)
{
    const struct fb_conn *conn;
    uint32_t index = 0, n = 0, clients = 0, timed = 0;

    while ((conn = net_next_conn(net, &index)) != NULL) {
        assert(conn->net == net);
        check_net_conn(conn);
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* The deadline of a session's connection: the time limit of the first byte, then of inactivity; the
 * time limit of input, regardless of output; and the lowest rate of the rest of a message.
 *
 * Responsible for the limit of every phase, and for the limit's end or interruption: a stop, a
 * close, the first bytes. Notes the time of input on connections with a receive timeout or a rate
 * alone, by different operations. Never calls a protocol, and never counts time in which the
 * connection is not read. Invariants: the idle timeout runs only in SESSION_ACTIVE; bytes that move
 * leave the timer alone; on expiry the timer is set for the rest of the time; a session_receive
 * lives as long as the connection's present user. */
#include "session/timeouts.h"

#include "session/secure.h"
#include "session/session.h"

#include <errno.h>
#include <inttypes.h>

static inline void set_timeout(struct fb_conn *conn, uint64_t ms)
{
    if (ms > 0)
        conn_deadline_set(conn, ms);
    else
        conn_deadline_clear(conn);
}

/* Returns the time limit of inactivity; 0: none. */
static inline uint64_t idle_timeout(const struct fb_conn *conn)
{
    const struct session_conn *session = conn->session;

    if (session != NULL && session->own_timeout)
        return session->timeout;
    return conn->outgoing ? 0 : (uint64_t)session_server_of(conn)->settings.idle_timeout;
}

void session_become_active(struct fb_conn *conn)
{
    session_set_phase(conn, SESSION_ACTIVE);
    conn->moved_ms = conn->net->loop.clock.mono_ms;
    set_timeout(conn, idle_timeout(conn));
}

void session_set_timeout(struct fb_conn *conn, uint64_t ms)
{
    struct session_conn *session = session_conn_make(conn);

    if (session == NULL)
        return;
    session->own_timeout = true;
    session->timeout = session_clamp_ms(ms);
    if (session_is_securing(conn))
        return;
    if ((conn->outgoing && !session->waits) || conn->session_phase == SESSION_ACTIVE)
        set_timeout(conn, ms);
}

/* While reading is stopped no first_byte_timeout runs: the first byte may lie in the kernel. */
void session_stop(struct fb_conn *conn)
{
    if (session_is_securing(conn)) {
        session_secure_of(conn)->stopped = true;
        return;
    }
    if (conn->limited && conn->session_phase == SESSION_AWAITED && conn->read == CONN_READ_ON &&
        conn_is_active(conn))
        conn_deadline_clear(conn);
    conn_stop(conn);
}

void session_resume(struct fb_conn *conn)
{
    if (session_is_securing(conn)) {
        session_secure_of(conn)->stopped = false;
        return;
    }
    if (conn->session_phase == SESSION_AWAITED && conn->read == CONN_READ_STOPPED &&
        conn_is_active(conn))
        set_timeout(conn, (uint64_t)session_server_of(conn)->settings.first_byte_timeout);
    conn_resume(conn);
}

void session_await_first_byte(struct fb_conn *conn)
{
    assert(conn->session_phase == SESSION_AWAITED);
    if (conn->read == CONN_READ_ON && conn->pipe == NULL && conn_is_active(conn))
        set_timeout(conn, (uint64_t)session_server_of(conn)->settings.first_byte_timeout);
}

void session_await_no_more(struct fb_conn *conn)
{
    if (conn->session_phase == SESSION_AWAITED && conn_is_active(conn) && conn->pipe == NULL)
        session_become_active(conn);
}

/* The close ends the wait for a first byte: output has to move. A pipe has an own deadline. */
void session_close(struct fb_conn *conn)
{
    session_await_no_more(conn);
    conn_close(conn);
}

void session_expired(struct fb_conn *conn)
{
    uint64_t passed = conn->net->loop.clock.mono_ms - conn->opened_ms;
    uint64_t timeout = (uint64_t)session_server_of(conn)->settings.first_byte_timeout;

    if (conn->session_phase == SESSION_NEW) { /* only a connect has a timer before `opened` */
        assert(conn->outgoing);
        stream_of(conn)->backends->connect_expired(conn);
        return;
    }
    if (conn->session_phase == SESSION_ACTIVE) {
        passed = conn_idle_ms(conn);
        timeout = idle_timeout(conn);
    }
    if (passed < timeout) { /* bytes have moved, or the time is longer than a deadline can be */
        set_timeout(conn, timeout - passed);
        return;
    }
    conn_log(conn, LEVEL_INFO, ETIMEDOUT, conn->outgoing ? "server timed out" : "client timed out");
    conn_fail(conn, FB_TIMED_OUT);
}

/* ---- Input ---- */

#define SESSION_RECEIVE_KIND KIND('S', 'R', 'E', 'C')

struct session_receive {
    unsigned kind;
    struct session_use *use;
    uint64_t timeout;    /* ms; SESSION_TIME_MOST at most; 0: none */
    uint64_t since;      /* monotonic ms: when input last came, or the time began */
    struct conn_ops ops; /* the connection's: session_conn_ops but for `data` */
    struct timer timer;
    const struct rate_setting *rate; /* NULL: any */
    uint64_t begun;                  /* ms: when a part of a message was left; 0: none is */
    uint64_t before;                 /* bytes that had been received then */
    struct timer rate_timer;         /* set while a part is left, and perhaps longer */
};

/* Begins to measure the time of a message's rest. */
static void measure(struct session_receive *receive, struct fb_conn *conn, size_t rest)
{
    struct loop *loop = &conn->net->loop;

    assert(
        receive->rate != NULL && receive->rate->bytes > 0 && receive->use->session->conn == conn);
    receive->begun = loop->clock.mono_ms;
    receive->before = conn->received - rest;
    if (!timer_is_set(&receive->rate_timer))
        timer_set(loop, &receive->rate_timer, (uint64_t)receive->rate->grace + 1);
}

/* Notes the input left by the protocol: a part of a message, continued where nothing was taken. */
static void note_rest(struct fb_conn *conn, size_t in, size_t used)
{
    const struct session_use *use = session_use_of(conn);
    struct session_receive *receive = use != NULL ? use->receive : NULL;

    if (receive == NULL || receive->rate == NULL)
        return;
    if (used >= in || conn->pipe != NULL || session_is_securing(conn))
        receive->begun = 0;
    else if (used > 0 || receive->begun == 0)
        measure(receive, conn, in - used);
}

static size_t receive_data(struct fb_conn *conn, fb_bytes in)
{
    size_t used;

    session_use_of(conn)->receive->since = conn->net->loop.clock.mono_ms;
    used = session_conn_ops.data(conn, in);
    note_rest(conn, in.n, used);
    return used;
}

/* Whether the peer could have been heard all the time, by the protocol. */
static bool is_heard(const struct fb_conn *conn)
{
    return conn->phase == CONN_OPEN && conn->read == CONN_READ_ON && !conn->paused &&
           !session_is_securing(conn);
}

static void receive_expired(struct loop *loop, struct timer *timer)
{
    struct session_receive *receive = container_of(timer, struct session_receive, timer);
    struct fb_conn *conn = receive->use->session->conn;
    uint64_t now = loop->clock.mono_ms;

    CHECK_KIND(receive, SESSION_RECEIVE_KIND);
    assert(receive->use->receive == receive && conn_is_owned(conn));
    if (!conn_is_active(conn) || conn->pipe != NULL || conn->read == CONN_READ_ENDED)
        return; /* the wait is over */
    if (!is_heard(conn))
        receive->since = now;
    if (now - receive->since < receive->timeout) {
        timer_set(loop, timer, receive->timeout - (now - receive->since));
        return;
    }
    conn_log(conn, LEVEL_INFO, ETIMEDOUT, "nothing was received for too long");
    conn_fail(conn, FB_TIMED_OUT);
    net_flush(conn->net);
}

static void rate_expired(struct loop *loop, struct timer *timer)
{
    struct session_receive *receive = container_of(timer, struct session_receive, rate_timer);
    struct fb_conn *conn = receive->use->session->conn;
    uint64_t now = loop->clock.mono_ms, bytes = conn->received - receive->before, due;

    CHECK_KIND(receive, SESSION_RECEIVE_KIND);
    assert(receive->rate != NULL && conn_is_owned(conn));
    if (!conn_is_active(conn) || conn->pipe != NULL || conn->read == CONN_READ_ENDED ||
        receive->begun == 0)
        return; /* nothing is awaited */
    if (!is_heard(conn)) {
        measure(receive, conn, 0);
        return;
    }
    due = receive->begun + (uint64_t)receive->rate->grace +
          bytes * 1000 / (uint64_t)receive->rate->bytes;
    if (now <= due) {
        timer_set(loop, timer, due + 1 - now);
        return;
    }
    conn_log(conn, LEVEL_INFO, 0,
        "client sends too slowly: %" PRIu64 " bytes of a message in %" PRIu64 " ms", bytes,
        now - receive->begun);
    session_set_status(conn, STATUS_TOO_SLOW);
    conn_fail(conn, FB_TIMED_OUT);
    net_flush(conn->net);
}

/* Returns a new session_receive; NULL without memory: the connection has been failed. */
static struct session_receive *create_receive(struct fb_conn *conn)
{
    struct session_use *use = session_use_make(conn);
    struct session_receive *receive;

    if (use == NULL)
        return NULL;
    receive = memory_alloc(conn->net->memory, sizeof(*receive));
    if (receive == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return NULL;
    }
    assert(use->receive == NULL && (conn->ops == &session_conn_ops || session_is_securing(conn)));
    *receive = (struct session_receive) {
        .kind = SESSION_RECEIVE_KIND,
        .use = use,
        .ops = session_conn_ops,
        .timer.expired = receive_expired,
        .rate_timer.expired = rate_expired,
    };
    receive->ops.data = receive_data;
    if (!session_is_securing(conn)) /* a handshake goes first */
        conn->ops = &receive->ops;
    use->receive = receive;
    return receive;
}

void session_receive_clear(struct session_use *use)
{
    struct session_receive *receive = use->receive;
    struct fb_conn *conn = use->session->conn;

    if (receive == NULL)
        return;
    CHECK_KIND(receive, SESSION_RECEIVE_KIND);
    assert(conn->ops == &receive->ops || session_is_securing(conn)); /* a pipe has given it back */
    if (!session_is_securing(conn))
        conn->ops = &session_conn_ops;
    use->receive = NULL;
    timer_del(&conn->net->loop, &receive->timer);
    timer_del(&conn->net->loop, &receive->rate_timer);
    receive->kind = 0;
    memory_release(conn->net->memory, receive);
}

void session_receive_set(struct fb_conn *conn, uint64_t ms)
{
    struct session_use *use = session_use_of(conn);
    struct session_receive *receive = use != NULL ? use->receive : NULL;
    struct loop *loop = &conn->net->loop;

    assert(conn_is_owned(conn) && conn->pipe == NULL);
    if (ms == 0) {
        if (receive != NULL && receive->rate != NULL)
            timer_del(loop, &receive->timer);
        else if (receive != NULL)
            session_receive_clear(use);
        return;
    }
    if (receive == NULL)
        receive = create_receive(conn);
    if (receive == NULL)
        return;
    receive->timeout = session_clamp_ms(ms);
    receive->since = loop->clock.mono_ms;
    timer_del(loop, &receive->timer);
    timer_set(loop, &receive->timer, receive->timeout);
}

const struct conn_ops *session_receive_ops(const struct fb_conn *conn)
{
    const struct session_use *use = session_use_of(conn);

    return use != NULL && use->receive != NULL ? &use->receive->ops : &session_conn_ops;
}

unsigned session_receive_begin_rate(struct fb_conn *conn, const void *setting)
{
    struct session_receive *receive = create_receive(conn);

    assert(!conn->outgoing && setting != NULL);
    if (receive != NULL)
        receive->rate = setting;
    return 0;
}

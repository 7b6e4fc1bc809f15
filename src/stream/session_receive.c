/* SPDX-License-Identifier: BSD-2-Clause */
/* The time in which a peer has to say something, whatever is sent to it.
 *
 * Responsible for noting when input comes, of the connections alone that have such a time: they
 * have operations of their own. Never counts time in which the connection is not read.
 * Invariant: a session_receive is its session_conn's, and lives as long as that has its present
 * user. */
#include "stream/session.h"
#include "stream/session_conn.h"

#include <errno.h>

#define SESSION_RECEIVE_KIND KIND('S', 'R', 'E', 'C')

struct session_receive {
    unsigned kind;
    struct session_conn *session;
    uint64_t timeout;    /* ms; SESSION_TIME_MOST at most; 0: none */
    uint64_t since;      /* monotonic ms: when input last came, or the time began */
    struct conn_ops ops; /* the connection's: those of each session, but for `data` */
    struct timer timer;
};

static size_t receive_data(struct fb_conn *conn, fb_bytes in)
{
    session_conn_of(conn)->receive->since = conn->net->loop.clock.mono_ms;
    return session_conn_ops.data(conn, in);
}

/* Whether the peer could have been heard all the time. */
static bool is_heard(const struct fb_conn *conn)
{
    return conn->phase == CONN_OPEN && conn->read == CONN_READ_ON && !conn->paused;
}

static void receive_expired(struct loop *loop, struct timer *timer)
{
    struct session_receive *receive = container_of(timer, struct session_receive, timer);
    struct fb_conn *conn = receive->session->conn;
    uint64_t now = loop->clock.mono_ms;

    CHECK_KIND(receive, SESSION_RECEIVE_KIND);
    assert(receive->session->receive == receive && conn_is_owned(conn));
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

/* Returns a new one, which is the connection's session's; NULL without memory, and then the
 * connection has been failed. */
static struct session_receive *create_receive(struct fb_conn *conn)
{
    struct session_conn *session = session_conn_make(conn);
    struct session_receive *receive;

    if (session == NULL)
        return NULL;
    receive = memory_alloc(conn->net->memory, sizeof(*receive));
    if (receive == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return NULL;
    }
    assert(session->receive == NULL && conn->ops == &session_conn_ops);
    *receive = (struct session_receive) {
        .kind = SESSION_RECEIVE_KIND,
        .session = session,
        .ops = session_conn_ops,
        .timer.expired = receive_expired,
    };
    receive->ops.data = receive_data;
    conn->ops = &receive->ops;
    session->receive = receive;
    return receive;
}

void session_receive_clear(struct session_conn *session)
{
    struct session_receive *receive = session->receive;
    struct fb_conn *conn = session->conn;

    if (receive == NULL)
        return;
    CHECK_KIND(receive, SESSION_RECEIVE_KIND);
    assert(conn->ops == &receive->ops); /* a pipe has given it back */
    conn->ops = &session_conn_ops;
    session->receive = NULL;
    timer_del(&conn->net->loop, &receive->timer);
    receive->kind = 0;
    memory_release(conn->net->memory, receive);
}

void session_receive_set(struct fb_conn *conn, uint64_t ms)
{
    struct session_conn *session = session_conn_of(conn);
    struct session_receive *receive = session != NULL ? session->receive : NULL;
    struct loop *loop = &conn->net->loop;

    assert(conn_is_owned(conn) && conn->pipe == NULL);
    if (ms == 0) {
        if (receive != NULL)
            session_receive_clear(session);
        return;
    }
    if (receive == NULL)
        receive = create_receive(conn);
    if (receive == NULL)
        return;
    receive->timeout = ms < SESSION_TIME_MOST ? ms : SESSION_TIME_MOST;
    receive->since = loop->clock.mono_ms;
    timer_del(loop, &receive->timer);
    timer_set(loop, &receive->timer, receive->timeout);
}

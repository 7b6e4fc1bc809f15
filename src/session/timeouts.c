/* SPDX-License-Identifier: BSD-2-Clause */
/* The deadline of a session's connection: the time limit of the first byte, then of inactivity.
 *
 * Responsible for the limit of every phase, and for the limit's end or interruption: a stop, a
 * close, the first bytes. Never calls a protocol. Invariant: the idle timeout runs only in
 * SESSION_ACTIVE; bytes that move leave the timer alone; on expiry the timer is set for the rest
 * of the time. */
#include "session/timeouts.h"

#include <errno.h>

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
    conn_note_moved(conn);
    set_timeout(conn, idle_timeout(conn));
}

void session_set_timeout(struct fb_conn *conn, uint64_t ms)
{
    struct session_conn *session = session_conn_make(conn);

    if (session == NULL)
        return;
    session->own_timeout = true;
    session->timeout = session_clamp_ms(ms);
    if ((conn->outgoing && !session->waits) || conn->session_phase == SESSION_ACTIVE)
        set_timeout(conn, ms);
}

/* While reading is stopped no first_byte_timeout runs: the first byte may lie in the kernel. */
void session_stop(struct fb_conn *conn)
{
    if (conn->session_phase == SESSION_AWAITED && conn->read == CONN_READ_ON &&
        conn_is_active(conn))
        conn_deadline_clear(conn);
    conn_stop(conn);
}

void session_resume(struct fb_conn *conn)
{
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

/* The close ends the wait for a client's first byte: bytes of its output have to move. The deadline
 * of a piped connection is the pipe's. */
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

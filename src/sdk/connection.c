/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on one connection: its flow, its end, its timers, its memory and its counts. A
 * piped connection belongs to the pipe, which decides about its flow and its timeout until both
 * ends close. */
#include "net/conn.h"
#include "sdk/handle.h"

#include <assert.h>

void fb_stop(fb_conn *conn)
{
    if (SDK_VALID(conn) && conn->pipe == NULL)
        conn_stop(conn);
}

void fb_resume(fb_conn *conn)
{
    if (SDK_VALID(conn) && conn->pipe == NULL)
        conn_resume(conn);
}

void fb_shutdown(fb_conn *conn)
{
    if (SDK_VALID(conn) && conn->pipe == NULL)
        conn_shutdown(conn);
}

void fb_close(fb_conn *conn)
{
    if (SDK_VALID(conn))
        session_close(conn);
}

void fb_abort(fb_conn *conn)
{
    if (SDK_VALID(conn))
        conn_fail(conn, FB_ABORTED);
}

void fb_set_timeout(fb_conn *conn, uint64_t ms)
{
    if (SDK_VALID(conn) && conn->pipe == NULL)
        session_set_timeout(conn, ms);
}

void fb_timer(fb_conn *conn, uint32_t id, uint64_t ms)
{
    if (SDK_VALID(conn))
        session_timer_set(conn, id, ms);
}

void fb_timer_cancel(fb_conn *conn, uint32_t id)
{
    if (SDK_VALID(conn))
        session_timer_cancel(conn, id);
}

void fb_set_idle(fb_conn *conn, int idle)
{
    if (SDK_VALID(conn))
        stream_set_idle(conn, idle != 0);
}

void *fb_alloc(fb_conn *conn, size_t n)
{
    struct session_conn *session = SDK_VALID(conn) ? session_conn_make(conn) : NULL;

    assert(session == NULL || session->conn == conn);
    return session != NULL ? net_alloc(conn->net, &session->lasting, n) : NULL;
}

void *fb_temp_alloc(fb_conn *conn, size_t n)
{
    struct session_conn *session = SDK_VALID(conn) ? session_conn_make(conn) : NULL;

    assert(session == NULL || session->conn == conn);
    return session != NULL ? net_alloc(conn->net, &session->temporary, n) : NULL;
}

void fb_temp_reset(fb_conn *conn)
{
    if (SDK_VALID(conn) && conn->session != NULL)
        net_release(conn->net, &session_conn_of(conn)->temporary);
}

const void *fb_conf_of(const fb_conn *conn)
{
    return SDK_VALID(conn) ? session_server_of(conn)->protocol_conf : NULL;
}

uint64_t fb_received(const fb_conn *conn)
{
    return SDK_VALID(conn) ? conn->received : 0;
}

uint64_t fb_sent(const fb_conn *conn)
{
    return SDK_VALID(conn) ? conn->sent : 0;
}

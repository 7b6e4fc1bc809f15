/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on a connection: flow, end, timers, memory and counts. A piped connection belongs
 * to the pipe, and the pipe decides about flow and timeout until both ends close. */
#include "net/conn_log.h"
#include "net/conn_state.h"
#include "sdk/handle.h"
#include "session/conn_end.h"
#include "session/drain.h"
#include "session/receive.h"
#include "session/timeouts.h"
#include "session/use.h"

#include <assert.h>

/* Limit of bytes of an allocation: a greater length was read from somewhere, or is a mistake. */
#define ALLOC_MOST (1024 * 1024 * 1024)

void fb_stop(fb_conn *conn)
{
    if (SDK_VALID(conn) && conn->pipe == NULL)
        session_stop(conn);
}

void fb_resume(fb_conn *conn)
{
    if (SDK_VALID(conn) && conn->pipe == NULL)
        session_resume(conn);
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

int fb_become(fb_conn *conn, const fb_ops *ops, void *state)
{
    return SDK_VALID(conn) ? session_become(conn, ops, state) : -1;
}

inline void fb_set_timeout(fb_conn *conn, uint64_t ms)
{
    if (SDK_VALID(conn) && conn->pipe == NULL)
        session_set_timeout(conn, ms);
}

void fb_set_receive_timeout(fb_conn *conn, uint64_t ms)
{
    if (SDK_VALID(conn) && conn->pipe == NULL)
        session_receive_set(conn, ms);
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
        session_set_idle(conn, idle != 0);
}

/* Whether an allocation of n bytes is allowed; else the log names the refused call. */
static bool check_alloc_size(fb_conn *conn, size_t n, const char *call)
{
    if (likely(n <= ALLOC_MOST))
        return true;
    conn_log(conn, LEVEL_ERROR, 0, "%s() of %zu bytes is refused: %zu are the most", call, n,
        (size_t)ALLOC_MOST);
    return false;
}

void *fb_alloc(fb_conn *conn, size_t n)
{
    struct session_conn *session = SDK_VALID(conn) ? session_conn_make(conn) : NULL;

    assert(session == NULL || session->conn == conn);
    if (session == NULL || !check_alloc_size(conn, n, __func__))
        return NULL;
    return net_alloc(conn->net, &session->lasting, n);
}

void *fb_temp_alloc(fb_conn *conn, size_t n)
{
    struct session_use *use = SDK_VALID(conn) ? session_use_create(conn) : NULL;

    assert(use == NULL || use->session->conn == conn);
    if (use == NULL || !check_alloc_size(conn, n, __func__))
        return NULL;
    return net_alloc(conn->net, &use->temporary, n);
}

void fb_temp_reset(fb_conn *conn)
{
    if (SDK_VALID(conn) && session_use_of(conn) != NULL)
        net_release(conn->net, &session_use_of(conn)->temporary);
}

void *fb_state_of(const fb_conn *conn)
{
    return SDK_VALID(conn) ? conn->state : NULL;
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

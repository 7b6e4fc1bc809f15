/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on a connection: output, files, flow, end, timers, memory and counts. Output is
 * appended to the unsent output, and sent by the loop after the callback. The pipe of a piped
 * connection decides about flow and timeout until both ends close. No call runs a callback, waits
 * for a disk unless `aio` is off, or touches an ended connection. */
#include "net/conn_log.h"
#include "net/conn_output.h"
#include "process/role.h"
#include "sdk/handle.h"
#include "session/conn_end.h"
#include "session/idle.h"
#include "session/secure.h"
#include "session/timeouts.h"
#include "session/use.h"
#include "worker/file_reads.h"

#include <assert.h>

/* Limit of bytes of an allocation: a greater length was read from somewhere, or is a mistake. */
#define ALLOC_MOST (1024 * 1024 * 1024)

/* Surround each addition to the output: a TLS handshake within the session keeps what is added. */
static inline bool begin_output(fb_conn *conn)
{
    return likely(!session_is_securing(conn)) || session_secure_write_begin(conn);
}

static inline void end_output(fb_conn *conn)
{
    if (unlikely(session_is_securing(conn)))
        session_secure_write_end(conn);
}

void fb_write(fb_conn *conn, const void *p, size_t n)
{
    if (!SDK_VALID(conn) || !begin_output(conn))
        return;
    conn_write(conn, p, n);
    end_output(conn);
}

void fb_writev(fb_conn *conn, const fb_bytes *pieces, size_t n)
{
    if (!SDK_VALID(conn) || !begin_output(conn))
        return;
    for (size_t i = 0; i < n; i++)
        conn_write(conn, pieces[i].p, pieces[i].n);
    end_output(conn);
}

int fb_write_ref(fb_conn *conn, const void *p, size_t n, void (*release)(void *arg), void *arg)
{
    int status;

    if (!SDK_VALID(conn) || !begin_output(conn))
        return -1;
    status = conn_write_ref(conn, p, n, release, arg);
    end_output(conn);
    return status;
}

int fb_send_file(fb_conn *conn, int fd, uint64_t offset, uint64_t n)
{
    int status;

    if (!SDK_VALID(conn) || !begin_output(conn))
        return -1;
    status = conn_write_file(conn, fd, offset, n);
    end_output(conn);
    return status;
}

void fb_flush(fb_conn *conn)
{
    if (SDK_VALID(conn))
        conn_push(conn);
}

size_t fb_unsent(const fb_conn *conn)
{
    if (!SDK_VALID(conn))
        return 0;
    return conn->unsent + (session_is_securing(conn) ? session_secure_of(conn)->unsent : 0);
}

/* ---- Files ---- */

int fb_read_file(fb_conn *conn, int fd, uint64_t offset, size_t n,
    void (*done)(fb_conn *conn, void *state, const fb_file_read *read))
{
    assert(role_is(ROLE_WORKER));
    return SDK_VALID(conn) ? file_reads_begin(conn, fd, offset, n, done) : -1;
}

fb_aio fb_aio_of(const fb_conn *conn)
{
    return SDK_VALID(conn) ? file_reads_way(conn) : FB_AIO_OFF;
}

/* ---- Flow, end and timers ---- */

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
    if (!SDK_VALID(conn) || conn->pipe != NULL)
        return;
    if (session_is_securing(conn))
        session_secure_of(conn)->shuts = true;
    else
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

/* ---- Memory and counts ---- */

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

inline void *fb_worker_state(const fb_conn *conn)
{
    return SDK_VALID(conn) ? worker_protocol_of(conn)->state : NULL;
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

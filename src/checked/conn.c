/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls on a connection in the checked mode: its flow, its end, its timers, its counts and its
 * addresses. Each does nothing after a report. */
#include "checked/calls.h"
#include "sdk/handle.h"

#include <stdarg.h>
#include <stdio.h>

/* Notes the call after which the connection takes no output. */
static void note_over(const fb_conn *conn, const char *call)
{
    struct checked_slot *slot = checked_slot_of(conn);

    if (slot != NULL && slot->over == NULL)
        slot->over = call;
}

void checked_stop(fb_conn *conn)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn != NULL)
        fb_stop(conn);
}

void checked_resume(fb_conn *conn)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn != NULL)
        fb_resume(conn);
}

void checked_shutdown(fb_conn *conn)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn == NULL)
        return;
    note_over(conn, CHECKED_CALL);
    fb_shutdown(conn);
}

void checked_close(fb_conn *conn)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn == NULL)
        return;
    note_over(conn, CHECKED_CALL);
    fb_close(conn);
}

void checked_abort(fb_conn *conn)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn == NULL)
        return;
    note_over(conn, CHECKED_CALL);
    fb_abort(conn);
}

void checked_keep(fb_conn *conn, uint64_t ms)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn == NULL)
        return;
    if (conn->outgoing)
        note_over(conn, CHECKED_CALL);
    fb_keep(conn, ms);
}

void checked_set_timeout(fb_conn *conn, uint64_t ms)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn != NULL)
        fb_set_timeout(conn, ms);
}

void checked_set_receive_timeout(fb_conn *conn, uint64_t ms)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn != NULL)
        fb_set_receive_timeout(conn, ms);
}

void checked_timer(fb_conn *conn, uint32_t id, uint64_t ms)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn != NULL)
        fb_timer(conn, id, ms);
}

void checked_timer_cancel(fb_conn *conn, uint32_t id)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn != NULL)
        fb_timer_cancel(conn, id);
}

void checked_set_idle(fb_conn *conn, int idle)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn != NULL)
        fb_set_idle(conn, idle);
}

void *checked_state_of(const fb_conn *conn)
{
    conn = checked_conn(conn, CHECKED_CALL);
    return conn != NULL ? fb_state_of(conn) : NULL;
}

const void *checked_conf_of(const fb_conn *conn)
{
    conn = checked_conn(conn, CHECKED_CALL);
    return conn != NULL ? fb_conf_of(conn) : NULL;
}

uint64_t checked_received(const fb_conn *conn)
{
    conn = checked_conn(conn, CHECKED_CALL);
    return conn != NULL ? fb_received(conn) : 0;
}

uint64_t checked_sent(const fb_conn *conn)
{
    conn = checked_conn(conn, CHECKED_CALL);
    return conn != NULL ? fb_sent(conn) : 0;
}

int checked_peer_address(const fb_conn *conn, struct sockaddr_storage *out)
{
    conn = checked_conn(conn, CHECKED_CALL);
    return conn != NULL && checked_given(CHECKED_CALL, out, "out") ? fb_peer_address(conn, out)
                                                                   : -1;
}

int checked_local_address(const fb_conn *conn, struct sockaddr_storage *out)
{
    conn = checked_conn(conn, CHECKED_CALL);
    return conn != NULL && checked_given(CHECKED_CALL, out, "out") ? fb_local_address(conn, out)
                                                                   : -1;
}

int checked_parse_address(fb_bytes text, struct sockaddr_storage *out)
{
    if (!checked_given(CHECKED_CALL, out, "out") ||
        (text.n > 0 && !checked_given(CHECKED_CALL, text.p, "text.p")))
        return -1;
    return fb_parse_address(text, out);
}

char *checked_address_text(const struct sockaddr_storage *address, char *text, size_t size)
{
    if (!checked_given(CHECKED_CALL, address, "address") ||
        !checked_given(CHECKED_CALL, text, "text"))
        return text;
    return fb_address_text(address, text, size);
}

void checked_count_request(fb_conn *conn)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn != NULL)
        fb_count_request(conn);
}

/* Whether the connection's protocol has the metric. */
static bool has_metric(const fb_conn *conn, uint32_t metric, const char *call)
{
    uint32_t n = session_server_of(conn)->protocol->metric_n;

    if (metric < n)
        return true;
    checked_report_call(NULL, call, "with metric %u of %u", metric, n);
    return false;
}

void checked_metric_add(fb_conn *conn, uint32_t metric, int64_t by)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn != NULL && has_metric(conn, metric, CHECKED_CALL))
        fb_metric_add(conn, metric, by);
}

int64_t checked_metric_total(const fb_conn *conn, uint32_t metric)
{
    conn = checked_conn(conn, CHECKED_CALL);
    return conn != NULL && has_metric(conn, metric, CHECKED_CALL) ? fb_metric_total(conn, metric)
                                                                  : 0;
}

fb_ref checked_ref_of(fb_conn *conn)
{
    conn = checked_conn(conn, CHECKED_CALL);
    return conn != NULL ? fb_ref_of(conn) : 0;
}

uint64_t checked_send_message(fb_conn *from, fb_ref to, const void *p, size_t n)
{
    from = checked_conn(from, CHECKED_CALL);
    if (from == NULL || !checked_bytes(CHECKED_CALL, p, n, "p"))
        return 0;
    return fb_send_message(from, to, p, n);
}

fb_worker *checked_worker_of(const fb_conn *conn)
{
    conn = checked_conn(conn, CHECKED_CALL);
    return conn != NULL ? fb_worker_of(conn) : NULL;
}

void *checked_worker_state(const fb_conn *conn)
{
    conn = checked_conn(conn, CHECKED_CALL);
    return conn != NULL ? fb_worker_state(conn) : NULL;
}

void checked_conn_logf(fb_conn *conn, fb_log_level level, const char *format, ...)
{
    char text[CHECKED_LINE];
    va_list args;

    conn = checked_conn(conn, CHECKED_CALL);
    if (conn == NULL || !checked_given(CHECKED_CALL, format, "format"))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fb_conn_logf(conn, level, "%s", text);
}

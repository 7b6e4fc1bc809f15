/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls on a connection with checks beyond a row of calls.def: end, metrics, output, memory,
 * frames. Memory is a block (memory.c) beside the daemon's memory; the daemon decides whether there
 * is any. A call does nothing after a report. */
#include "checked/calls.h"
#include "sdk/handle.h"

#include <string.h>

/* ---- The end ---- */

/* Notes the call that ended the connection's output. */
static void note_over(const fb_conn *conn, const char *call)
{
    struct checked_slot *slot = checked_slot_of(conn);

    if (slot != NULL && slot->over == NULL)
        slot->over = call;
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

/* ---- Metrics ---- */

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

/* ---- Output ---- */

void checked_writev(fb_conn *conn, const fb_bytes *pieces, size_t n)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn == NULL || !checked_can_write(conn, CHECKED_CALL) ||
        !checked_bytes(CHECKED_CALL, pieces, n * sizeof(*pieces), "pieces"))
        return;
    for (size_t i = 0; i < n; i++)
        if (!checked_bytes(CHECKED_CALL, pieces[i].p, pieces[i].n, "a piece"))
            return;
    fb_writev(conn, pieces, n);
}

/* ---- Memory ---- */

/* Returns a block for memory of the daemon's; the daemon's memory where there cannot be a block. */
static void *guard_memory(const fb_conn *conn, enum checked_kind kind, void *real, size_t n)
{
    struct checked_slot *slot = real != NULL ? checked_slot_of(conn) : NULL;
    struct checked_block *block = NULL;

    if (slot != NULL)
        block = checked_block_make(checked_of(sdk_worker_of(conn)), slot, kind,
            session_server_of(conn)->protocol->name, n);
    return block != NULL ? block->p : real;
}

void *checked_alloc(fb_conn *conn, size_t n)
{
    conn = checked_conn(conn, CHECKED_CALL);
    return conn != NULL ? guard_memory(conn, CHECKED_ALLOC, fb_alloc(conn, n), n) : NULL;
}

void *checked_temp_alloc(fb_conn *conn, size_t n)
{
    conn = checked_conn(conn, CHECKED_CALL);
    return conn != NULL ? guard_memory(conn, CHECKED_TEMP, fb_temp_alloc(conn, n), n) : NULL;
}

void checked_temp_reset(fb_conn *conn)
{
    struct checked_slot *slot;

    conn = checked_conn(conn, CHECKED_CALL);
    if (conn == NULL)
        return;
    slot = checked_slot_of(conn);
    if (slot != NULL) {
        checked_blocks_check(slot, "fb_temp_reset()");
        checked_block_end_all(
            checked_of(sdk_worker_of(conn)), slot, CHECKED_TEMP, "fb_temp_reset()");
    }
    fb_temp_reset(conn);
}

/* ---- Frames ---- */

/* Returns the connection, with `rest` moved to the real input. */
static fb_conn *enter_input(
    fb_conn *conn, fb_bytes *rest, const void *limit, const void *frame, const char *call)
{
    const struct checked *checked;
    const uint8_t *p;

    conn = checked_conn(conn, call);
    if (conn == NULL || !checked_given(call, rest, "rest") ||
        !checked_given(call, limit, "limit") || !checked_given(call, frame, "frame"))
        return NULL;
    checked = checked_of(sdk_worker_of(conn));
    if (checked == NULL || checked->input == NULL)
        return conn;
    p = (const uint8_t *)checked->input->p;
    if (checked->input_conn != conn || rest->p < p || rest->p > p + checked->input->n ||
        rest->n > (size_t)(p + checked->input->n - rest->p)) {
        checked_report_call(NULL, call, "with bytes that are not the connection's input");
        return NULL;
    }
    rest->p = checked->input_real + (rest->p - p);
    return conn;
}

/* Moves bytes of the real input to the protocol's lent copy. */
static void move_to_copy(const fb_conn *conn, fb_bytes *bytes)
{
    const struct checked *checked = checked_of(sdk_worker_of(conn));

    if (checked != NULL && checked->input != NULL && bytes != NULL)
        bytes->p = (const uint8_t *)checked->input->p + (bytes->p - checked->input_real);
}

static int leave_input(
    const fb_conn *conn, fb_bytes *rest, fb_bytes *head, fb_bytes *frame, int cut)
{
    move_to_copy(conn, rest);
    if (cut) {
        move_to_copy(conn, head);
        move_to_copy(conn, frame);
    }
    return cut;
}

/* Whether a number lies in its range. */
static bool check_width(unsigned width, unsigned most, const char *call)
{
    if (width >= 1 && width <= most)
        return true;
    checked_report_call(NULL, call, "with a width of %u: 1 to %u", width, most);
    return false;
}

int checked_frame_until(fb_conn *conn, fb_bytes *rest, const void *delimiter, size_t delimiter_n,
    const fb_frame_limit *limit, fb_bytes *frame)
{
    if (delimiter_n == 0) {
        checked_report_call(NULL, CHECKED_CALL, "with a delimiter of no bytes");
        return 0;
    }
    if (!checked_bytes(CHECKED_CALL, delimiter, delimiter_n, "delimiter"))
        return 0;
    conn = enter_input(conn, rest, limit, frame, CHECKED_CALL);
    if (conn == NULL)
        return 0;
    return leave_input(
        conn, rest, NULL, frame, fb_frame_until(conn, rest, delimiter, delimiter_n, limit, frame));
}

int checked_frame_fixed(
    fb_conn *conn, fb_bytes *rest, size_t n, const fb_frame_limit *limit, fb_bytes *frame)
{
    conn = enter_input(conn, rest, limit, frame, CHECKED_CALL);
    if (conn == NULL)
        return 0;
    return leave_input(conn, rest, NULL, frame, fb_frame_fixed(conn, rest, n, limit, frame));
}

int checked_frame_prefixed(fb_conn *conn, fb_bytes *rest, unsigned width, int little,
    const fb_frame_limit *limit, fb_bytes *frame)
{
    if (!check_width(width, 8, CHECKED_CALL))
        return 0;
    conn = enter_input(conn, rest, limit, frame, CHECKED_CALL);
    if (conn == NULL)
        return 0;
    return leave_input(
        conn, rest, NULL, frame, fb_frame_prefixed(conn, rest, width, little, limit, frame));
}

int checked_frame_varint(
    fb_conn *conn, fb_bytes *rest, unsigned width, const fb_frame_limit *limit, fb_bytes *frame)
{
    if (!check_width(width, 10, CHECKED_CALL))
        return 0;
    conn = enter_input(conn, rest, limit, frame, CHECKED_CALL);
    if (conn == NULL)
        return 0;
    return leave_input(conn, rest, NULL, frame, fb_frame_varint(conn, rest, width, limit, frame));
}

int checked_frame_counted(fb_conn *conn, fb_bytes *rest, const fb_frame_layout *layout,
    const fb_frame_limit *limit, fb_bytes *head, fb_bytes *frame)
{
    if (!checked_given(CHECKED_CALL, layout, "layout"))
        return 0;
    if (layout->size < sizeof(*layout)) {
        checked_report_call(NULL, CHECKED_CALL, "with a layout whose size is %zu", layout->size);
        return 0;
    }
    if (!check_width(layout->width, layout->varint ? 10 : 8, CHECKED_CALL))
        return 0;
    conn = enter_input(conn, rest, limit, frame, CHECKED_CALL);
    if (conn == NULL)
        return 0;
    return leave_input(
        conn, rest, head, frame, fb_frame_counted(conn, rest, layout, limit, head, frame));
}

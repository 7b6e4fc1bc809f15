/* SPDX-License-Identifier: BSD-2-Clause */
/* The wrappers of calls.def's rows, the wrappers of the configuration's calls with further checks,
 * and the table of all wrappers for the loader of the checked mode. Memory is a block (memory.c)
 * beside the daemon's memory; the daemon decides whether there is any. */
#include "checked/calls.h"

#include "module/module.h"
#include "sdk/handle.h"
#include "settings/calls.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- The checks of rows ---- */

#define OUTPUT(conn) (CONN(conn) && checked_can_write(conn, CHECKED_CALL))
#define OVER(conn) (note_over(conn, CHECKED_CALL), true)
#define WORKER_PLACE() checked_place_is_worker(NULL, CHECKED_CALL)
#define MAP(map) (checked_map((fb_map *)(uintptr_t)(map), CHECKED_CALL) != NULL)
#define MASTER(master) checked_place_is_master(master, CHECKED_CALL)
#define ITEM(item) (GIVEN(item) && BYTES((item)->value, (item)->room, #item))
#define METRIC(conn, metric) has_metric(conn, metric, CHECKED_CALL)
#define WIDTH(width, most)                                                                         \
    (((width) >= 1 && (width) <= (most)) ||                                                        \
        REPORT("with a width of %u: 1 to %u", (unsigned)(width), (unsigned)(most)))
#define INPUT(conn, rest, limit, frame)                                                            \
    (CONN(conn) && GIVEN(rest) && GIVEN(limit) && GIVEN(frame) &&                                  \
        enter_input(conn, rest, CHECKED_CALL))

/* Notes the call that ended the connection's output. */
static void note_over(const fb_conn *conn, const char *call)
{
    struct checked_slot *slot = checked_slot_of(conn);

    if (slot != NULL && slot->over == NULL)
        slot->over = call;
}

/* Whether the connection's protocol has the metric. */
static bool has_metric(const fb_conn *conn, uint32_t metric, const char *call)
{
    uint32_t n = session_server_of(conn)->protocol->metric_n;

    return metric < n || checked_report_call(NULL, call, "with metric %u of %u", metric, n);
}

static bool has_pieces(const fb_bytes *pieces, size_t n, const char *call)
{
    if (!checked_bytes(call, pieces, n * sizeof(*pieces), "pieces"))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!checked_bytes(call, pieces[i].p, pieces[i].n, "a piece"))
            return false;
    return true;
}

/* Whether the pool belongs to the worker's configuration. */
static bool is_pool(const fb_worker *worker, const fb_pool *pool, const char *call)
{
    const fb_pool *own = &worker->worker->cycle->core.pool;

    while (own != NULL && own != pool)
        own = own->next;
    return own != NULL || pool == NULL ||
           checked_report_call(NULL, call, "with a pool that is none of this configuration");
}

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

/* Ends the temporary memory of a connection. */
static void end_temporary(const fb_conn *conn)
{
    struct checked_slot *slot = checked_slot_of(conn);

    if (slot == NULL)
        return;
    checked_blocks_check(slot, "fb_temp_reset()");
    checked_block_end_all(checked_of(sdk_worker_of(conn)), slot, CHECKED_TEMP, "fb_temp_reset()");
}

/* ---- Frames ---- */

/* Returns the scope with lent input; NULL: none. */
static const struct checked_scope *input_scope(void)
{
    const struct checked_scope *scope = checked_scope_now();

    while (scope != NULL && (scope->lent == NULL || scope->lent->kind != CHECKED_INPUT))
        scope = scope->outer;
    return scope;
}

/* Moves `rest` to the real input. */
static bool enter_input(const fb_conn *conn, fb_bytes *rest, const char *call)
{
    const struct checked_scope *scope = input_scope();
    const uint8_t *p = scope != NULL ? (const uint8_t *)scope->lent->p : NULL;

    if (scope == NULL)
        return true;
    if (scope->conn != conn || rest->p < p || rest->p > p + scope->lent->n ||
        rest->n > (size_t)(p + scope->lent->n - rest->p))
        return checked_report_call(NULL, call, "with bytes that are not the connection's input");
    rest->p = scope->real + (rest->p - p);
    return true;
}

/* Moves bytes of the real input to the protocol's lent copy. */
static void move_to_copy(fb_bytes *bytes)
{
    const struct checked_scope *scope = input_scope();

    if (scope != NULL && bytes != NULL)
        bytes->p = (const uint8_t *)scope->lent->p + (bytes->p - scope->real);
}

/* Moves the result of a frame call to the lent copy; returns the call's `cut`. */
static int leave_input(fb_bytes *rest, fb_bytes *head, fb_bytes *frame, int cut)
{
    move_to_copy(rest);
    if (cut) {
        move_to_copy(head);
        move_to_copy(frame);
    }
    return cut;
}

/* ---- The wrappers ---- */

#define CALL(name)

#define CALL_VALUE(name, signature, checks, call, otherwise)                                       \
    signature                                                                                      \
    {                                                                                              \
        return (checks) ? call : otherwise;                                                        \
    }

#define CALL_VOID(name, signature, checks, call)                                                   \
    signature                                                                                      \
    {                                                                                              \
        if (checks)                                                                                \
            call;                                                                                  \
    }

/* The call of a format is made with the formatted text. */
#define CALL_LOGF(name, signature, checks, call)                                                   \
    signature                                                                                      \
    {                                                                                              \
        char text[CHECKED_LINE];                                                                   \
        va_list args;                                                                              \
                                                                                                   \
        if (!(checks) || !GIVEN(format))                                                           \
            return;                                                                                \
        va_start(args, format);                                                                    \
        vsnprintf(text, sizeof(text), format, args);                                               \
        va_end(args);                                                                              \
        call;                                                                                      \
    }

#include "checked/calls.def"

int checked_conf_errorf(fb_conf *conf, const char *directive, const char *format, ...)
{
    va_list args;

    if (!CONF(conf) || !GIVEN(format))
        return -1;
    va_start(args, format);
    settings_vreport(conf, directive, format, args);
    va_end(args);
    return -1;
}

const fb_health_check *checked_conf_health_check(fb_conf *conf, const char *directive,
    const fb_upstream *upstream, const fb_health_options *options)
{
    fb_health_options own;

    if (!CONF(conf) || !GIVEN(directive) || !GIVEN(upstream) || !OPTIONS(&own, options))
        return NULL;
    return fb_conf_health_check(conf, directive, upstream, &own);
}

/* The table */
#define CALL(name) { "fb_" #name, (void (*)(void))fb_##name, (void (*)(void))checked_##name },

const struct relink_call checked_calls[] = {
#include "checked/calls.def"
    { NULL, NULL, NULL },
};

const fb_protocol *(*const checked_protocol_wrapper)(
    struct arena *arena, const fb_protocol *copy) = checked_protocol_make;

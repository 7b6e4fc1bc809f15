/* SPDX-License-Identifier: BSD-2-Clause */
/* The callbacks of connections in the checked mode: wrappers call the protocol's callbacks with a
 * tagged handle and with copies of lent memory, and look at the red zones afterwards. Never calls a
 * callback missing in the protocol. */
#include "checked/ops.h"

#include "base/check.h"
#include "checked/handles.h"
#include "sdk/handle.h"

#include <stdlib.h>
#include <string.h>

#define OPS_KIND KIND('C', 'O', 'P', 'S')

/* Returns the wrappers of a connection with a checked protocol. */
static const struct checked_ops *ops_of_conn(const fb_conn *conn)
{
    const struct checked_ops *ops = checked_ops_running(conn);

    CHECK_KIND(ops, OPS_KIND);
    return ops;
}

void checked_enter_conn(struct checked_scope *scope, const fb_conn *conn, const char *callback)
{
    *scope = (struct checked_scope) {
        .place = CHECKED_CALLBACK,
        .callback = callback,
        .protocol = &ops_of_conn(conn)->protocol->protocol,
        .checked = checked_of(sdk_worker_of(conn)),
        .conn = conn,
    };
    checked_scope_enter(scope);
}

void checked_leave_conn(struct checked_scope *scope, const fb_conn *conn)
{
    const struct checked_slot *slot;

    if (conn->net == NULL) { /* a child of fork(), which ends now */
        checked_scope_leave(scope);
        return;
    }
    slot = checked_slot_of(conn);
    if (slot->zone != NULL && !checked_is_filled(slot->zone, CHECKED_ZONE))
        checked_report(NULL, "went beyond the %u bytes of its conn_state, in \"%s\"",
            checked_protocol_of(session_server_of(conn)->protocol)->own.conn_state,
            scope->callback);
    checked_blocks_check(slot, scope->callback);
    checked_leave_worker(scope, worker_protocol_of(conn));
}

/* The red zone behind the state of a client. */
static void fill_state_zone(fb_conn *conn)
{
    const struct server *server = session_server_of(conn);
    const struct checked_protocol *protocol = checked_protocol_of(server->protocol);
    struct checked_slot *slot = checked_slot_of(conn);
    char *state = stream_state_at(conn, server);

    if (conn->outgoing || protocol == NULL || protocol->own.conn_state == 0 || state == NULL)
        return;
    slot->zone = state + protocol->own.conn_state;
    checked_zone_fill(slot->zone);
}

static int ops_opened(fb_conn *conn, void *state)
{
    const struct checked_ops *ops = ops_of_conn(conn);
    struct checked_scope scope;
    int result = 0;

    fill_state_zone(conn);
    if (ops->own.opened == NULL)
        return 0;
    checked_enter_conn(&scope, conn, "opened");
    result = ops->own.opened(checked_handle_of(conn), state);
    checked_leave_conn(&scope, conn);
    return result;
}

static size_t ops_data(fb_conn *conn, void *state, fb_bytes in)
{
    const struct checked_ops *ops = ops_of_conn(conn);
    struct checked_scope scope;
    size_t used;

    checked_enter_conn(&scope, conn, "data");
    used = ops->own.data(
        checked_handle_of(conn), state, checked_block_lend(&scope, CHECKED_INPUT, in));
    if (used > in.n)
        checked_report(NULL, "consumed %zu bytes of %zu in \"data\"", used, in.n);
    checked_leave_conn(&scope, conn);
    return used;
}

static int ops_message(fb_conn *conn, void *state, fb_ref from, fb_bytes message)
{
    const struct checked_ops *ops = ops_of_conn(conn);
    struct checked_scope scope;
    int result;

    checked_enter_conn(&scope, conn, "message");
    scope.conn = NULL; /* a sender cannot know of an end */
    message = checked_block_lend(&scope, CHECKED_MESSAGE, message);
    result = ops->own.message(checked_handle_of(conn), state, from, message);
    checked_leave_conn(&scope, conn);
    return result;
}

/* Wrappers of callbacks without a result; the callback is called with the arguments. `ender` is the
 * connection, unless the callback cannot know of an end. */
#define CONN_CALLBACK(name, signature, ender, ...)                                                 \
    static void signature                                                                          \
    {                                                                                              \
        const struct checked_ops *ops = ops_of_conn(conn);                                         \
        struct checked_scope scope;                                                                \
                                                                                                   \
        checked_enter_conn(&scope, conn, #name);                                                   \
        scope.conn = ender;                                                                        \
        ops->own.name(checked_handle_of(conn), state __VA_OPT__(, ) __VA_ARGS__);                  \
        checked_leave_conn(&scope, conn);                                                          \
    }

CONN_CALLBACK(eof, ops_eof(fb_conn *conn, void *state, fb_bytes rest), conn,
    checked_block_lend(&scope, CHECKED_INPUT, rest))
CONN_CALLBACK(writable, ops_writable(fb_conn *conn, void *state), conn)
CONN_CALLBACK(unwritable, ops_unwritable(fb_conn *conn, void *state), conn)
CONN_CALLBACK(tls_started, ops_tls_started(fb_conn *conn, void *state), conn)
CONN_CALLBACK(timer, ops_timer(fb_conn *conn, void *state, uint32_t id), conn, id)
CONN_CALLBACK(draining, ops_draining(fb_conn *conn, void *state, uint64_t deadline), conn, deadline)
CONN_CALLBACK(answered,
    ops_answered(fb_conn *conn, void *state, uint64_t message, fb_outcome outcome), NULL, message,
    outcome)

static void ops_closed(fb_conn *conn, void *state, fb_reason reason)
{
    const struct checked_ops *ops = ops_of_conn(conn);
    struct checked_slot *slot = checked_slot_of(conn);
    struct checked_scope scope;

    checked_enter_conn(&scope, conn, "closed");
    scope.closes = conn;
    if (ops->own.closed != NULL)
        ops->own.closed(checked_handle_of(conn), state, reason);
    checked_leave_conn(&scope, conn);
    if (conn->net != NULL)
        checked_slot_end(scope.checked, slot);
}

void checked_ops_make(
    struct checked_ops *made, const fb_ops *from, const struct checked_protocol *protocol)
{
    size_t size = from->size < sizeof(made->own) ? from->size : sizeof(made->own);
    fb_ops *o = &made->own;

    memset(made, 0, sizeof(*made));
    memcpy(o, from, size);
    made->kind = OPS_KIND;
    made->from = from;
    made->protocol = protocol;
    made->ops = (fb_ops) {
        .size = sizeof(made->ops),
        .opened = ops_opened,
        .data = o->data != NULL ? ops_data : NULL,
        .eof = o->eof != NULL ? ops_eof : NULL,
        .writable = o->writable != NULL ? ops_writable : NULL,
        .timer = o->timer != NULL ? ops_timer : NULL,
        .draining = o->draining != NULL ? ops_draining : NULL,
        .message = o->message != NULL ? ops_message : NULL,
        .answered = o->answered != NULL ? ops_answered : NULL,
        .closed = ops_closed,
        .unwritable = o->unwritable != NULL ? ops_unwritable : NULL,
        .tls_started = o->tls_started != NULL ? ops_tls_started : NULL,
    };
}

/* Whether the wrappers are of the protocol's present operations. */
static bool is_same_ops(
    const struct checked_ops *made, const struct checked_protocol *protocol, const fb_ops *from)
{
    fb_ops now = { 0 };

    if (made->from != from || made->protocol != protocol)
        return false;
    memcpy(&now, from, from->size < sizeof(now) ? from->size : sizeof(now));
    return memcmp(&now, &made->own, sizeof(now)) == 0;
}

const fb_ops *checked_ops_of(
    struct checked *checked, const struct checked_protocol *protocol, const fb_ops *from)
{
    struct checked_ops *made;

    SLIST_FOREACH (made, &checked->ops, link)
        if (is_same_ops(made, protocol, from))
            return &made->ops;
    made = malloc(sizeof(*made));
    if (made == NULL)
        return NULL;
    checked_ops_make(made, from, protocol);
    SLIST_INSERT_HEAD(&checked->ops, made, link);
    return &made->ops;
}

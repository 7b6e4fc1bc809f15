/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls in the checked mode that give a connection callbacks, or a separate life: connections
 * to servers, pipes, new callbacks, reads of files. The daemon is given wrappers in place of the
 * protocol's operations, shared by all uses of equal operations. */
#include "checked/calls.h"
#include "sdk/handle.h"
#include "session/read.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Returns the wrappers of operations for a protocol, NULL after a report or without memory; the
 * operations themselves where the protocol is not checked. */
static const fb_ops *wrap_ops(
    struct worker *worker, const fb_protocol *running, const fb_ops *ops, const char *call)
{
    const struct checked_scope *scope = checked_scope_now();
    const struct checked_protocol *protocol =
        checked_protocol_of(scope != NULL ? scope->protocol : running);

    if (!checked_given(call, ops, "ops"))
        return NULL;
    if ((ops->size < offsetof(fb_ops, closed) || ops->size > UINT16_MAX) &&
        !checked_report_call(NULL, call, "with ops whose size is %zu", ops->size))
        return NULL;
    return protocol != NULL ? checked_ops_of(checked_of(worker), protocol, ops) : ops;
}

int checked_become(fb_conn *conn, const fb_ops *ops, void *state)
{
    struct checked_slot *slot;

    if (!CONN(conn))
        return -1;
    ops = wrap_ops(sdk_worker_of(conn), session_server_of(conn)->protocol, ops, CHECKED_CALL);
    if (ops == NULL || fb_become(conn, ops, state) == -1)
        return -1;
    slot = checked_slot_of(conn);
    if (slot != NULL)
        checked_slot_forget(checked_of(sdk_worker_of(conn)), slot, false);
    return 0;
}

fb_conn *checked_connect(fb_conn *owner, const fb_target *target, const fb_ops *ops, void *state)
{
    if (!CONN(owner) || !checked_target(target, CHECKED_CALL))
        return NULL;
    ops = wrap_ops(sdk_worker_of(owner), session_server_of(owner)->protocol, ops, CHECKED_CALL);
    return ops != NULL ? checked_handle_of(fb_connect(owner, target, ops, state)) : NULL;
}

fb_conn *checked_connect_with(fb_worker *worker, const fb_target *target, const fb_ops *ops,
    void *state, const fb_connect_options *options)
{
    fb_connect_options own;

    if (!WORKER(worker) || !OPTIONS(&own, options) || (own.owner != NULL && !CONN(own.owner)) ||
        !BYTES(own.key, own.key_n, "key") || !BYTES(own.tls_name.p, own.tls_name.n, "tls_name") ||
        !BYTES(own.tls_before.p, own.tls_before.n, "tls_before"))
        return NULL;
    if ((target != NULL || own.address == NULL) && !checked_target(target, CHECKED_CALL))
        return NULL;
    ops = wrap_ops(worker->worker, worker->protocol, ops, CHECKED_CALL);
    return ops != NULL ? checked_handle_of(fb_connect_with(worker, target, ops, state, &own))
                       : NULL;
}

/* Notes the target as the connection's. */
static const fb_target *note_target(const fb_conn *conn, const fb_target *target)
{
    struct checked_slot *slot = target != NULL ? checked_slot_of(conn) : NULL;
    struct checked_object *made =
        slot != NULL ? checked_object_make(OBJECT_TARGET, slot, NULL) : NULL;

    if (made != NULL)
        checked_object_begin(checked_of(sdk_worker_of(conn)), made, target);
    return target;
}

const fb_target *checked_target_from(fb_conn *conn, const struct sockaddr *address)
{
    return CONN(conn) && GIVEN(address) ? note_target(conn, fb_target_from(conn, address)) : NULL;
}

const fb_target *checked_make_target(fb_conn *conn, const char *text)
{
    return CONN(conn) && GIVEN(text) ? note_target(conn, fb_make_target(conn, text)) : NULL;
}

static void first_byte_came(fb_conn *b, void *state)
{
    struct checked_slot *slot = checked_slot_of(b);
    struct checked_scope scope;

    assert(slot != NULL && slot->first_byte != NULL);
    checked_enter_conn(&scope, b, "first_byte");
    slot->first_byte(checked_handle_of(b), state);
    checked_leave_conn(&scope, b);
}

void checked_pipe(fb_conn *a, fb_conn *b, const fb_pipe_options *options)
{
    struct checked_slot *slot;
    fb_pipe_options own;

    if (!CONN(a) || !CONN(b) || (a == b && !REPORT("with one connection as both")) ||
        !OPTIONS(&own, options))
        return;
    slot = checked_slot_of(b);
    if (b->pipe == NULL && own.first_byte != NULL && slot != NULL) {
        slot->first_byte = own.first_byte;
        own.first_byte = first_byte_came;
    }
    fb_pipe(a, b, &own);
}

/* ---- Files ---- */

static void read_is_done(fb_conn *conn, void *state, const fb_file_read *real)
{
    const struct checked_slot *slot = checked_slot_of(conn);
    struct checked *checked = checked_of(sdk_worker_of(conn));
    struct checked_object *made =
                              slot != NULL ? checked_object_find(checked, OBJECT_READ, real) : NULL,
                          own;
    fb_file_read lent = *real;
    struct checked_scope scope;

    if (made == NULL)
        return;
    own = *made;
    checked_object_end(checked, OBJECT_READ, real);
    checked_enter_conn(&scope, conn, "done");
    lent.bytes = checked_block_lend(&scope, CHECKED_READ, real->bytes);
    own.callback.done(checked_handle_of(conn), state, &lent);
    checked_leave_conn(&scope, conn);
}

int checked_read_file(fb_conn *conn, int fd, uint64_t offset, size_t n,
    void (*done)(fb_conn *conn, void *state, const fb_file_read *read))
{
    const struct session_read *begun = NULL;
    struct checked_object *made;
    const struct checked_slot *slot;

    if (!CONN(conn) || !GIVEN(done))
        return -1;
    slot = checked_slot_of(conn);
    if (slot == NULL)
        return fb_read_file(conn, fd, offset, n, done);
    made = checked_object_make(OBJECT_READ, slot, NULL);
    if (made == NULL)
        return -1;
    made->callback.done = done;
    if (fb_read_file(conn, fd, offset, n, read_is_done) == 0)
        begun = TAILQ_LAST(&session_use_of(conn)->reads, session_own_reads);
    return checked_object_begin(checked_of(sdk_worker_of(conn)), made,
               begun != NULL ? &begun->outcome : NULL) != NULL
               ? 0
               : -1;
}

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
    if (ops->size < offsetof(fb_ops, closed) || ops->size > UINT16_MAX) {
        checked_report_call(NULL, call, "with ops whose size is %zu", ops->size);
        return NULL;
    }
    return protocol != NULL ? checked_ops_of(checked_of(worker), protocol, ops) : ops;
}

int checked_become(fb_conn *conn, const fb_ops *ops, void *state)
{
    struct checked_slot *slot;

    conn = checked_conn(conn, CHECKED_CALL);
    if (conn == NULL)
        return -1;
    ops = wrap_ops(sdk_worker_of(conn), session_server_of(conn)->protocol, ops, CHECKED_CALL);
    if (ops == NULL || fb_become(conn, ops, state) == -1)
        return -1;
    slot = checked_slot_of(conn);
    if (slot != NULL)
        checked_slot_forget(checked_of(sdk_worker_of(conn)), slot);
    return 0;
}

fb_conn *checked_connect(fb_conn *owner, const fb_target *target, const fb_ops *ops, void *state)
{
    owner = checked_conn(owner, CHECKED_CALL);
    if (owner == NULL || !checked_target(target, CHECKED_CALL))
        return NULL;
    ops = wrap_ops(sdk_worker_of(owner), session_server_of(owner)->protocol, ops, CHECKED_CALL);
    return ops != NULL ? checked_handle_of(fb_connect(owner, target, ops, state)) : NULL;
}

/* Copies the options, with the handle's connection as owner; false after a report. */
static bool take_connect_options(
    fb_connect_options *own, const fb_connect_options *options, const char *call)
{
    if (!checked_options(call, own, sizeof(*own), options))
        return false;
    if (own->owner != NULL && (own->owner = checked_conn(own->owner, call)) == NULL)
        return false;
    return checked_bytes(call, own->key, own->key_n, "key");
}

fb_conn *checked_connect_with(fb_worker *worker, const fb_target *target, const fb_ops *ops,
    void *state, const fb_connect_options *options)
{
    fb_connect_options own;

    worker = checked_worker(worker, CHECKED_CALL);
    if (worker == NULL || !take_connect_options(&own, options, CHECKED_CALL))
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
    struct checked_target *made = slot != NULL ? malloc(sizeof(*made)) : NULL;

    if (made == NULL)
        return target;
    made->target = target;
    SLIST_INSERT_HEAD(&slot->targets, made, link);
    checked_not_gone(checked_of(sdk_worker_of(conn)), target);
    return target;
}

const fb_target *checked_target_from(fb_conn *conn, const struct sockaddr *address)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn == NULL || !checked_given(CHECKED_CALL, address, "address"))
        return NULL;
    return note_target(conn, fb_target_from(conn, address));
}

const fb_target *checked_make_target(fb_conn *conn, const char *text)
{
    conn = checked_conn(conn, CHECKED_CALL);
    if (conn == NULL || !checked_given(CHECKED_CALL, text, "text"))
        return NULL;
    return note_target(conn, fb_make_target(conn, text));
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

/* Puts a wrapper in the place of the protocol's function, where the protocol is checked. */
static void wrap_first_byte(fb_conn *b, fb_pipe_options *own)
{
    struct checked_slot *slot = checked_slot_of(b);

    if (own->first_byte == NULL || slot == NULL)
        return;
    slot->first_byte = own->first_byte;
    own->first_byte = first_byte_came;
}

void checked_pipe(fb_conn *a, fb_conn *b, const fb_pipe_options *options)
{
    fb_pipe_options own;

    a = checked_conn(a, CHECKED_CALL);
    b = a != NULL ? checked_conn(b, CHECKED_CALL) : NULL;
    if (b == NULL)
        return;
    if (a == b) {
        checked_report_call(NULL, CHECKED_CALL, "with one connection as both");
    } else if (checked_options(CHECKED_CALL, &own, sizeof(own), options)) {
        if (b->pipe == NULL)
            wrap_first_byte(b, &own);
        fb_pipe(a, b, &own);
    }
}

/* ---- Files ---- */

/* Takes the read with the outcome from the reads of the connection. */
static struct checked_read *take_read(struct checked_slot *slot, const fb_file_read *outcome)
{
    struct checked_read *read;

    SLIST_FOREACH (read, &slot->reads, link)
        if (read->outcome == outcome)
            break;
    if (read != NULL)
        SLIST_REMOVE(&slot->reads, read, checked_read, link);
    return read;
}

static void read_is_done(fb_conn *conn, void *state, const fb_file_read *real)
{
    struct checked_slot *slot = checked_slot_of(conn);
    struct checked_read *read = slot != NULL ? take_read(slot, real) : NULL;
    fb_file_read lent = *real;
    struct checked_block *block;
    struct checked_scope scope;

    if (read == NULL)
        return;
    checked_enter_conn(&scope, conn, "done");
    block = checked_block_lend(
        scope.checked, CHECKED_READ, scope.protocol->name, real->bytes.p, real->bytes.n);
    if (block != NULL)
        lent.bytes.p = (const uint8_t *)block->p;
    read->done(checked_handle_of(conn), state, &lent);
    free(read);
    if (block != NULL && conn->net != NULL)
        checked_block_end(scope.checked, block, "its callback");
    checked_leave_conn(&scope, conn);
}

int checked_read_file(fb_conn *conn, int fd, uint64_t offset, size_t n,
    void (*done)(fb_conn *conn, void *state, const fb_file_read *read))
{
    const struct session_read *begun;
    struct checked_read *read;
    struct checked_slot *slot;

    conn = checked_conn(conn, CHECKED_CALL);
    if (conn == NULL || !checked_given(CHECKED_CALL, (const void *)(uintptr_t)done, "done"))
        return -1;
    slot = checked_slot_of(conn);
    if (slot == NULL)
        return fb_read_file(conn, fd, offset, n, done);
    read = malloc(sizeof(*read));
    if (read == NULL)
        return -1;
    read->done = done;
    if (fb_read_file(conn, fd, offset, n, read_is_done) == -1) {
        free(read);
        return -1;
    }
    begun = TAILQ_LAST(&session_use_of(conn)->reads, session_own_reads);
    assert(begun != NULL);
    read->outcome = &begun->outcome;
    SLIST_INSERT_HEAD(&slot->reads, read, link);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a worker in the checked mode, from the start of the first checked protocol to the
 * end of the last: the lives of connections' slots, and the ended objects. Never there for a worker
 * without a checked protocol. Invariant: the descriptor of wrappers is the first member of struct
 * checked_protocol, by which wrappers find the protocol's own descriptor. */
#include "checked/checked.h"

#include "base/check.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct checked *checked_of(const struct worker *worker)
{
    struct checked *checked;

    SLIST_FOREACH (checked, checked_scope_workers(), link)
        if (checked->worker == worker)
            break;
    return checked;
}

const struct checked_protocol *checked_protocol_of(const fb_protocol *protocol)
{
    if (protocol == NULL || protocol->worker_start != checked_worker_start)
        return NULL;
    return container_of(protocol, struct checked_protocol, protocol);
}

/* ---- Objects ---- */

bool checked_is_gone(const struct checked *checked, const void *p)
{
    for (unsigned i = 0; i < CHECKED_ENDED; i++)
        if (checked->gone[i] == p)
            return true;
    return false;
}

struct checked_object *checked_object_make(
    enum checked_object_kind kind, const struct checked_slot *owner, void *arg)
{
    struct checked_object *made = malloc(sizeof(*made));

    if (made != NULL)
        *made = (struct checked_object) { .kind = kind, .owner = owner, .arg = arg };
    return made;
}

void *checked_object_begin(struct checked *checked, struct checked_object *made, const void *object)
{
    if (object == NULL) {
        free(made);
        return NULL;
    }
    for (unsigned i = 0; i < CHECKED_ENDED; i++)
        if (checked->gone[i] == object) /* a former object had the address */
            checked->gone[i] = NULL;
    made->object = object;
    LIST_INSERT_HEAD(&checked->objects, made, link);
    return (void *)(uintptr_t)object;
}

struct checked_object *checked_object_find(
    const struct checked *checked, enum checked_object_kind kind, const void *object)
{
    struct checked_object *made;

    LIST_FOREACH (made, &checked->objects, link)
        if (made->kind == kind && made->object == object)
            break;
    return made;
}

void checked_object_end(struct checked *checked, enum checked_object_kind kind, const void *object)
{
    struct checked_object *made = checked_object_find(checked, kind, object);

    if (made != NULL) {
        LIST_REMOVE(made, link);
        free(made);
    }
    if (kind != OBJECT_READ) /* no handle of the protocol's */
        checked->gone[checked->gone_at++ % CHECKED_ENDED] = object;
}

/* ---- Lives of slots ---- */

void checked_slot_forget(struct checked *checked, const struct checked_slot *slot, bool ends)
{
    struct checked_object *made, *next;

    LIST_FOREACH_SAFE (made, &checked->objects, link, next)
        if (made->owner == slot && (ends || made->kind != OBJECT_TARGET))
            checked_object_end(checked, made->kind, made->object);
}

void checked_slot_end(struct checked *checked, struct checked_slot *slot)
{
    if (!slot->begun)
        return;
    checked_block_end_all(checked, slot, CHECKED_TEMP, "the end of its connection");
    checked_block_end_all(checked, slot, CHECKED_ALLOC, "the end of its connection");
    checked_slot_forget(checked, slot, true);
    slot->begun = false;
    slot->over = NULL;
    slot->zone = NULL;
    slot->lives++;
}

/* ---- Callbacks of a worker ---- */

void checked_enter_worker(
    struct checked_scope *scope, const fb_worker *worker, const char *callback)
{
    *scope = (struct checked_scope) {
        .place = CHECKED_CALLBACK,
        .callback = callback,
        .protocol = worker->protocol,
        .checked = checked_of(worker->worker),
    };
    checked_scope_enter(scope);
}

/* Reports a write behind a protocol's worker_state. */
static void check_states(const struct checked_scope *scope, const fb_worker *worker)
{
    const fb_protocol *protocol = &checked_protocol_of(scope->protocol)->own;

    if (protocol->worker_state > 0 && worker->state != NULL &&
        !checked_is_filled((const char *)worker->state + protocol->worker_state, CHECKED_ZONE))
        checked_report(NULL, "went beyond the %u bytes of its worker_state, in \"%s\"",
            protocol->worker_state, scope->callback);
}

void checked_leave_worker(struct checked_scope *scope, const fb_worker *worker)
{
    if (worker->worker != NULL) { /* not a child of fork() */
        if (scope->lent != NULL)
            checked_block_end(scope->checked, scope->lent, "its callback");
        check_states(scope, worker);
    }
    checked_scope_leave(scope);
}

/* ---- The beginning and the end ---- */

/* Returns the worker's state, made by the first started protocol; NULL without memory. */
static struct checked *begin_checked(struct worker *worker)
{
    const struct source_table *table = &worker->stream.net.loop.sources;
    struct checked *checked = checked_of(worker);

    if (checked != NULL) {
        checked->protocol_n++;
        return checked;
    }
    checked = calloc(1, sizeof(*checked));
    if (checked == NULL)
        return NULL;
    checked->slots = calloc(table->n, sizeof(*checked->slots));
    if (checked->slots == NULL) {
        free(checked);
        return NULL;
    }
    checked->slot_n = table->n;
    checked->base = table->base;
    checked->stride = table->stride;
    checked->worker = worker;
    checked->thread = pthread_self();
    checked->protocol_n = 1;
    TAILQ_INIT(&checked->live);
    TAILQ_INIT(&checked->ended);
    SLIST_INSERT_HEAD(checked_scope_workers(), checked, link);
    checked_report_crashes();
    return checked;
}

/* Drops a stopped protocol; the last protocol of the worker frees the state. */
static void end_checked(struct checked *checked)
{
    struct checked_ops *ops;
    struct checked_object *made;

    assert(checked->protocol_n > 0);
    if (--checked->protocol_n > 0)
        return;
    SLIST_REMOVE(checked_scope_workers(), checked, checked, link);
    for (uint32_t i = 0; i < checked->begun_n; i++)
        checked_slot_end(checked, &checked->slots[i]);
    free(checked->slots);
    checked_blocks_free(&checked->live);
    checked_blocks_free(&checked->ended);
    while ((ops = SLIST_FIRST(&checked->ops)) != NULL) {
        SLIST_REMOVE_HEAD(&checked->ops, link);
        free(ops);
    }
    while ((made = LIST_FIRST(&checked->objects)) != NULL) {
        LIST_REMOVE(made, link);
        free(made);
    }
    free(checked);
}

int checked_worker_start(fb_worker *worker, void *state)
{
    struct checked *checked = begin_checked(worker->worker);
    const struct checked_protocol *protocol = checked_protocol_of(worker->protocol);
    struct checked_scope scope;
    int result = 0;

    if (checked == NULL) {
        log_write(&worker->worker->log, LEVEL_EMERG, errno, "no memory to check protocols");
        return -1;
    }
    if (protocol->own.worker_state > 0)
        checked_zone_fill((char *)state + protocol->own.worker_state);
    if (protocol->own.worker_start == NULL)
        return 0;
    checked_enter_worker(&scope, worker, "worker_start");
    result = protocol->own.worker_start(worker, state);
    checked_leave_worker(&scope, worker);
    if (result != 0)
        end_checked(checked);
    return result;
}

void checked_worker_stop(fb_worker *worker, void *state)
{
    const struct checked_protocol *protocol = checked_protocol_of(worker->protocol);
    struct checked *checked = checked_of(worker->worker);
    struct checked_scope scope;

    checked_enter_worker(&scope, worker, "worker_stop");
    if (protocol->own.worker_stop != NULL)
        protocol->own.worker_stop(worker, state);
    checked_leave_worker(&scope, worker);
    if (worker->worker != NULL)
        end_checked(checked);
}

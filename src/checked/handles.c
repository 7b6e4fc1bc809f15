/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns handles of the checked mode into the daemon's objects, after a check of the handle, of the
 * calling protocol, and of the place of the call. Never follows a pointer before its target is
 * verified. Invariant: consecutive lives of a slot have different handles. */
#include "checked/handles.h"

#include "base/compiler.h"
#include "sdk/handle.h"
#include "session/conn.h"
#include "settings/calls.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Handles of a slot, until the first is used again. */
#define TAGS 120

static_assert(sizeof(fb_conn) > TAGS, "a tagged handle lies within its slot");

/* ---- Places ---- */

/* Whether a worker's loop runs on this thread, or no loop runs at all. */
static bool is_loop_thread(void)
{
    const struct checked *checked;

    SLIST_FOREACH (checked, checked_scope_workers(), link)
        if (pthread_equal(checked->thread, pthread_self()))
            return true;
    return SLIST_EMPTY(checked_scope_workers());
}

bool checked_place_is_worker(const char *protocol, const char *call)
{
    const struct checked_scope *scope = checked_scope_now();

    if (scope == NULL)
        return is_loop_thread() || checked_report_call(protocol, call, "from a thread of its own");
    if (scope->place == CHECKED_JOB)
        return checked_report_call(NULL, call, "in a job of fb_run()");
    return scope->place == CHECKED_CALLBACK ||
           checked_report_call(NULL, call, "in %s", scope->callback);
}

bool checked_place_is_conf(const fb_conf *conf, const char *call)
{
    const struct checked_scope *scope = checked_scope_now();

    if (scope == NULL || scope->place != CHECKED_CONF)
        return checked_report_call(NULL, call, "outside of conf_done and `set`");
    return conf == scope->conf ||
           checked_report_call(NULL, call, "with a wrong configuration handle");
}

bool checked_place_is_master(const fb_master *master, const char *call)
{
    const struct checked_scope *scope = checked_scope_now();

    return (scope != NULL && scope->place == CHECKED_MASTER && master == scope->master) ||
           checked_report_call(NULL, call, "outside of conf_accepted and conf_gone");
}

bool checked_given(const char *call, const void *p, const char *name)
{
    return p != NULL || checked_report_call(NULL, call, "with NULL as %s", name);
}

bool checked_options(const char *call, void *own, size_t n, const void *options)
{
    size_t size = n;

    memset(own, 0, n);
    if (options != NULL)
        memcpy(&size, options, sizeof(size));
    if (size < sizeof(size) || size > UINT16_MAX)
        return checked_report_call(NULL, call, "with options whose size is %zu", size);
    if (options != NULL)
        memcpy(own, options, size < n ? size : n);
    memcpy(own, &n, sizeof(n));
    return true;
}

/* ---- Kinds ---- */

static struct checked *of_slot(const void *p)
{
    struct checked *checked;

    SLIST_FOREACH (checked, checked_scope_workers(), link)
        if ((const char *)p >= checked->base &&
            (const char *)p < checked->base + checked->slot_n * checked->stride)
            break;
    return checked;
}

static struct checked *of_worker(const void *p)
{
    struct checked *checked;

    SLIST_FOREACH (checked, checked_scope_workers(), link)
        for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
            if (p == &checked->worker->protocols[i])
                return checked;
    return NULL;
}

static struct checked *of_watch(const void *p)
{
    struct checked *checked;
    const struct fb_watch *watch;

    SLIST_FOREACH (checked, checked_scope_workers(), link)
        LIST_FOREACH (watch, &checked->worker->watches.list, link)
            if (p == watch)
                return checked;
    return NULL;
}

static struct checked *of_map(const void *p)
{
    struct checked *checked;
    const struct zone *zone;

    SLIST_FOREACH (checked, checked_scope_workers(), link)
        STAILQ_FOREACH (zone, &checked->worker->cycle->zones, link)
            if (zone->kind == &shm_map_kind && p == container_of(zone->shape, struct fb_map, shape))
                return checked;
    return NULL;
}

/* Returns the kind of a handle; NULL: of an unknown kind. */
static const char *kind_name(const void *p)
{
    if (of_slot(p) != NULL)
        return "a connection";
    if (of_worker(p) != NULL)
        return "a worker";
    if (of_map(p) != NULL)
        return "a map";
    return of_watch(p) != NULL ? "a watch" : NULL;
}

static bool has_ended(const void *p)
{
    const struct checked *checked;

    SLIST_FOREACH (checked, checked_scope_workers(), link)
        if (checked_is_gone(checked, p))
            return true;
    return false;
}

/* Reports the kind of a handle given in place of a `wanted` handle; returns NULL. */
static void *report_kind(const char *call, const void *p, const char *wanted)
{
    if (p == NULL)
        checked_report_call(NULL, call, "with NULL as %s", wanted);
    else if (kind_name(p) != NULL)
        checked_report_call(NULL, call, "with %s as %s", kind_name(p), wanted);
    else
        checked_report_call(
            NULL, call, "with %s that %s", wanted, has_ended(p) ? "has ended" : "is none");
    return NULL;
}

/* ---- Connections ---- */

static unsigned slot_tag(const struct checked_slot *slot)
{
    return 1 + slot->lives % TAGS;
}

static struct checked_slot *slot_at(const struct checked *checked, const void *p)
{
    return &checked->slots[(size_t)((const char *)p - checked->base) / checked->stride];
}

struct checked_ops *checked_ops_running(const fb_conn *conn)
{
    const struct checked_protocol *protocol =
        checked_protocol_of(session_server_of(conn)->protocol);
    const fb_ops *ops = session_ops_of(conn);
    struct checked *checked = checked_of(sdk_worker_of(conn));
    struct checked_ops *made;

    if (protocol != NULL && ops == protocol->protocol.ops)
        return (struct checked_ops *)(uintptr_t)&protocol->ops;
    if (checked == NULL)
        return NULL;
    SLIST_FOREACH (made, &checked->ops, link)
        if (&made->ops == ops)
            break;
    return made;
}

struct checked_slot *checked_slot_of(const fb_conn *conn)
{
    struct checked *checked = of_slot(conn);
    struct checked_slot *slot;

    if (checked == NULL || conn->net == NULL || checked_ops_running(conn) == NULL)
        return NULL;
    slot = slot_at(checked, conn);
    slot->begun = true;
    if (slot - checked->slots >= checked->begun_n)
        checked->begun_n = (uint32_t)(slot - checked->slots) + 1;
    return slot;
}

fb_conn *checked_handle_of(fb_conn *conn)
{
    const struct checked_slot *slot = conn != NULL ? checked_slot_of(conn) : NULL;

    return slot != NULL ? (fb_conn *)(void *)((char *)conn + slot_tag(slot)) : conn;
}

/* Whether the connection belongs to a protocol other than the running protocol, and may not be
 * used, after a report. */
static bool is_foreign_conn(const fb_conn *conn, const char *call)
{
    const struct checked_scope *scope = checked_scope_now();
    const fb_protocol *protocol = session_server_of(conn)->protocol;

    if (scope == NULL || protocol == NULL || protocol == scope->protocol ||
        (protocol->flags & FB_TAKES_FOREIGN) != 0)
        return false;
    return !checked_report_call(NULL, call, "on a connection of protocol \"%s\"", protocol->name);
}

/* Whether the running callback is this worker's; always true outside of callbacks. */
static bool is_running(const struct checked *checked)
{
    const struct checked_scope *scope = checked_scope_now();

    return scope == NULL || scope->checked == checked;
}

/* Returns the name of the last connection's protocol in the slot. */
static const char *slot_owner_name(const struct checked *checked, const fb_conn *conn)
{
    const struct binding *binding = conn->owner;

    assert(checked->worker->stream.net.memory != NULL);
    return binding != NULL && binding->server->protocol != NULL ? binding->server->protocol->name
                                                                : NULL;
}

fb_conn *checked_conn(const fb_conn *handle, const char *call)
{
    const struct checked *checked = of_slot(handle);
    const struct checked_slot *slot;
    fb_conn *conn;
    unsigned tag;

    if (checked == NULL)
        return checked_place_is_worker(NULL, call) ? report_kind(call, handle, "a connection")
                                                   : NULL;
    tag = (unsigned)((size_t)((const char *)handle - checked->base) % checked->stride);
    conn = (fb_conn *)(void *)((char *)handle - tag);
    slot = slot_at(checked, conn);
    if (checked->worker->stream.net.memory == NULL) /* a child of fork(), which ends there */
        return conn;
    if (!checked_place_is_worker(slot_owner_name(checked, conn), call))
        return NULL;
    if ((tag != 0 && tag != slot_tag(slot)) || !session_is_usable(conn)) {
        checked_report_call(slot_owner_name(checked, conn), call, "on a connection that has ended");
        return NULL;
    }
    if (!is_running(checked)) {
        checked_report_call(
            slot_owner_name(checked, conn), call, "on a connection of another worker");
        return NULL;
    }
    return is_foreign_conn(conn, call) ? NULL : conn;
}

bool checked_can_write(const fb_conn *conn, const char *call)
{
    const struct checked_slot *slot = checked_slot_of(conn);
    const struct checked_scope *scope = checked_scope_now();

    if (scope != NULL && scope->closes == conn)
        return checked_report_call(NULL, call, "in \"closed\" of the connection");
    return slot == NULL || slot->over == NULL || scope == NULL || scope->conn != conn ||
           checked_report_call(NULL, call, "after fb_%s() of the connection", slot->over);
}

/* ---- Further handles ---- */

fb_worker *checked_worker(const fb_worker *handle, const char *call)
{
    const struct checked_scope *scope = checked_scope_now();
    const struct checked *checked = of_worker(handle);

    if (!checked_place_is_worker(
            checked != NULL && handle->protocol != NULL ? handle->protocol->name : NULL, call))
        return NULL;
    if (checked == NULL)
        return report_kind(call, handle, "a worker");
    if (!is_running(checked))
        checked_report_call(NULL, call, "with the handle of another worker");
    else if (handle->worker != NULL && scope != NULL && handle->protocol != scope->protocol)
        checked_report_call(
            NULL, call, "with the worker of protocol \"%s\"", handle->protocol->name);
    else
        return (fb_worker *)(uintptr_t)handle;
    return NULL;
}

fb_watch *checked_watch(fb_watch *handle, const char *call)
{
    if (!checked_place_is_worker(NULL, call))
        return NULL;
    return of_watch(handle) != NULL ? handle : report_kind(call, handle, "a watch");
}

fb_map *checked_map(fb_map *handle, const char *call)
{
    return of_map(handle) != NULL ? handle : report_kind(call, handle, "a map");
}

struct checked *checked_resolution(const fb_resolution *resolution, const char *call)
{
    struct checked *checked;

    if (!checked_place_is_worker(NULL, call))
        return NULL;
    SLIST_FOREACH (checked, checked_scope_workers(), link)
        if (checked_object_find(checked, OBJECT_RESOLUTION, resolution) != NULL)
            return checked;
    return report_kind(call, resolution, "a resolution");
}

bool checked_target(const fb_target *target, const char *call)
{
    bool wrong = target == NULL || kind_name(target) != NULL || has_ended(target);

    if (wrong)
        report_kind(call, target, "a target");
    return !wrong;
}

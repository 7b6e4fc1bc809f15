/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls on names in the checked mode. A resolution is known from the call to the callback, the
 * cancellation, or the end of the owner or of the worker's protocols. */
#include "checked/calls.h"
#include "sdk/handle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Forgets a resolution that has ended. */
static void drop_resolution(struct checked *checked, struct checked_resolution *made)
{
    SLIST_REMOVE(&checked->resolutions, made, checked_resolution, link);
    checked_gone(checked, made->resolution);
    free(made);
}

static void is_resolved(fb_worker *worker, const fb_names *names, void *arg)
{
    struct checked_resolution *made = arg, own = *made;
    struct checked_scope scope;

    drop_resolution(checked_of(worker->worker), made);
    checked_enter_worker(&scope, worker, "resolved");
    own.resolved(worker, names, own.arg);
    checked_leave_worker(&scope, worker);
}

/* Copies the options, with the handle's connection as owner; false after a report. */
static bool take_resolve_options(
    fb_resolve_options *own, const fb_resolve_options *options, const char *call)
{
    if (!checked_options(call, own, sizeof(*own), options))
        return false;
    return own->owner == NULL || (own->owner = checked_conn(own->owner, call)) != NULL;
}

fb_resolution *checked_resolve(fb_worker *worker, const char *name, fb_name_type type,
    const fb_resolve_options *options,
    void (*resolved)(fb_worker *worker, const fb_names *names, void *arg), void *arg)
{
    struct checked_resolution *made;
    fb_resolve_options own;

    worker = checked_worker(worker, CHECKED_CALL);
    if (worker == NULL || !take_resolve_options(&own, options, CHECKED_CALL) ||
        !checked_given(CHECKED_CALL, (const void *)(uintptr_t)resolved, "resolved"))
        return NULL;
    if (checked_protocol_of(worker->protocol) == NULL)
        return fb_resolve(worker, name, type, &own, resolved, arg);
    made = malloc(sizeof(*made));
    if (made == NULL)
        return NULL;
    *made = (struct checked_resolution) {
        .resolved = resolved,
        .arg = arg,
        .owner = own.owner != NULL ? checked_slot_of(own.owner) : NULL,
    };
    made->resolution = fb_resolve(worker, name, type, &own, is_resolved, made);
    if (made->resolution == NULL) {
        free(made);
        return NULL;
    }
    checked_not_gone(checked_of(worker->worker), made->resolution);
    SLIST_INSERT_HEAD(&checked_of(worker->worker)->resolutions, made, link);
    return (fb_resolution *)(uintptr_t)made->resolution;
}

void checked_resolve_cancel(fb_resolution *resolution)
{
    struct checked *checked;
    struct checked_resolution *made = NULL;

    if (!checked_resolution(resolution, CHECKED_CALL))
        return;
    SLIST_FOREACH (checked, checked_scope_workers(), link) {
        SLIST_FOREACH (made, &checked->resolutions, link)
            if (made->resolution == resolution)
                break;
        if (made != NULL)
            break;
    }
    assert(made != NULL);
    drop_resolution(checked, made);
    fb_resolve_cancel(resolution);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the stack of scopes of each thread, and the process's list of checked workers. Never looks
 * into a scope beyond its link. Invariant: scopes are left in the reverse order. */
#include "process/checked_scope.h"

#include <assert.h>
#include <stddef.h>

static _Thread_local struct checked_scope *innermost;
static struct checked_list workers = SLIST_HEAD_INITIALIZER(workers);

void checked_scope_enter(struct checked_scope *scope)
{
    assert(scope != innermost);
    scope->outer = innermost;
    innermost = scope;
}

void checked_scope_leave(struct checked_scope *scope)
{
    assert(scope == innermost);
    innermost = scope->outer;
}

struct checked_scope *checked_scope_now(void)
{
    return innermost;
}

struct checked_list *checked_scope_workers(void)
{
    return &workers;
}

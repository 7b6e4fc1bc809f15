/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of the written directives. A directive is looked up by row, not by name. */
#include "settings/scope.h"

#include "base/check.h"
#include "settings/apply.h"

#include <string.h>

void scope_init(struct scope *scope, unsigned at, struct scope *outer)
{
    assert((at & CONTEXT_ANY) == at && at != 0 && (at & (at - 1)) == 0);
    assert((outer == NULL) == (at == CONTEXT_MAIN));
    scope->kind = SCOPE_KIND;
    scope->at = at;
    scope->outer = outer;
    STAILQ_INIT(&scope->seen);
    STAILQ_INIT(&scope->servers);
    STAILQ_INIT(&scope->listens);
    STAILQ_INIT(&scope->names);
}

const struct conf_directive *scope_find(const struct scope *scope, const struct setting *setting)
{
    const struct scope_entry *seen;

    CHECK_KIND(scope, SCOPE_KIND);
    STAILQ_FOREACH (seen, &scope->seen, link)
        if (seen->setting == setting)
            return seen->directive;
    return NULL;
}

bool scope_sets_field(
    const struct scope *scope, const struct setting *table, const struct setting *setting)
{
    assert(setting->at & scope->at);
    for (const struct setting *row = table; row->name != NULL; row++)
        if (row->set == setting->set && row->offset == setting->offset &&
            row->feature == setting->feature && scope_find(scope, row) != NULL)
            return true;
    return false;
}

bool scope_is_whole(const struct apply *apply, const struct scope *scope)
{
    return !scope->refused && !apply->cut && !apply->cycle->source.partial;
}

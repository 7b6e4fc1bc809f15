/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of the directives that were written. A directive is looked up by its row, not by its name.
 * */
#include "settings/scope.h"

#include "base/check.h"
#include "settings/apply.h"

#include <string.h>

void scope_init(struct fb_frame *scope, unsigned at, struct fb_frame *outer)
{
    assert(at == FB_AT_MAIN || at == FB_AT_EVENTS || at == FB_AT_STREAM || at == FB_AT_SERVER);
    assert((outer == NULL) == (at == FB_AT_MAIN));
    scope->kind = SCOPE_KIND;
    scope->at = at;
    scope->outer = outer;
    STAILQ_INIT(&scope->seen);
    STAILQ_INIT(&scope->servers);
    STAILQ_INIT(&scope->listens);
}

const struct fb_conf_directive *fb_frame_seen(
    const struct fb_frame *scope, const struct fb_setting *setting)
{
    const struct fb_seen *seen;

    CHECK_KIND(scope, SCOPE_KIND);
    STAILQ_FOREACH (seen, &scope->seen, link)
        if (seen->setting == setting)
            return seen->directive;
    return NULL;
}

bool scope_sets_field(
    const struct fb_frame *scope, const struct fb_setting *table, const struct fb_setting *setting)
{
    assert(setting->at & scope->at);
    for (const struct fb_setting *row = table; row->name != NULL; row++)
        if (row->set == setting->set && row->offset == setting->offset &&
            fb_frame_seen(scope, row) != NULL)
            return true;
    return false;
}

bool fb_frame_is_whole(const struct fb_apply *apply, const struct fb_frame *scope)
{
    return !scope->refused && !apply->cut && !apply->cycle->source.partial;
}

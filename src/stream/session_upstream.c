/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the group that a directive, or its text with the session's variables, leads to. */
#include "stream/session_upstream.h"

#include "stream/template.h"

#include <string.h>

/* Returns the group that the text names. */
static struct upstream *find_named(const struct upstream_list *all, const struct value *text)
{
    struct upstream *upstream;

    STAILQ_FOREACH (upstream, all, link)
        if (!upstream->is_single && strlen(upstream->name) == text->n &&
            memcmp(upstream->name, text->p, text->n) == 0)
            return upstream;
    return NULL;
}

struct upstream *session_upstream_find(
    struct fb_conn *client, const struct fb_upstream *where, fb_choice *status)
{
    struct upstream *upstream = where->upstream;
    struct value text;

    if (upstream != NULL)
        return upstream;
    *status = FB_CHOICE_NO_MEMORY;
    if (template_value(client, where->text, &text) == -1)
        return NULL;
    upstream = find_named(where->all, &text);
    if (upstream != NULL)
        return upstream;
    *status = FB_CHOICE_INVALID;
    conn_log(client, LEVEL_ERROR, 0, "no upstream of the name \"%.*s\"", (int)text.n, text.p);
    return NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The value that a map, a geo or a split_clients gives its variable: a text as it is, or a
 * template. Constant data, which lives as long as the configuration. */
#pragma once

#include "text/template.h"

struct map_text {
    const char *p;
    uint32_t n;
    const struct template *template; /* NULL: the text as it is */
};

/* Makes the value of a session; -1 without memory. */
static inline int map_text_value(
    struct fb_conn *conn, const struct map_text *text, struct value *value)
{
    if (text->template != NULL)
        return template_value(conn, text->template, value);
    *value = value_own(text->p, text->n);
    return 0;
}

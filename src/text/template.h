/* SPDX-License-Identifier: BSD-2-Clause */
/* Text with variables: $name, ${name}, and $1 to $9 for captures of the session's last regular
 * expression. Made by settings/template.c. */
#pragma once

#include "text/variable.h"

/* Limit of parts of a text. */
#define TEMPLATE_PARTS_MAX 128
/* The whole match and its captures. */
#define CAPTURES_MAX 10

/* A constant text, a variable, or a capture. */
struct template_part {
    const struct variable *variable; /* NULL: none */
    struct value text;               /* text of a constant part */
    unsigned capture;                /* of neither */
};

struct template
{
    const struct template_part *parts;
    unsigned part_n; /* 0: the text is empty */
};

/* The texts matched by a regular expression in a session, the whole match first. */
struct captures {
    struct value at[CAPTURES_MAX];
};

/* Whether the text is constant over sessions; *text is set then. */
bool template_is_constant(const struct template *template, struct value *text);
/* Makes the text, lent until the session's end, without missing values. -1 without memory. */
int template_value(struct fb_conn *conn, const struct template *template, struct value *out);
/* Returns the value of one part. */
struct value template_part_value(struct fb_conn *conn, const struct template_part *part);
/* Sets the session's captures from now on, with the lifetime of the session. */
void captures_set(struct fb_conn *conn, const struct captures *captures);
/* The value of the variable of a map, a geo or a split_clients. */
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

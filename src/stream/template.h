/* SPDX-License-Identifier: BSD-2-Clause */
/* Text with variables: $name and ${name}. settings/template.c makes it. */
#pragma once

#include "stream/variable.h"

/* Parts that one text can have. */
#define TEMPLATE_PARTS_MAX 128

/* A constant text, or a variable. */
struct template_part {
    const struct variable *variable; /* NULL: none */
    struct value text;               /* of a constant part */
};

struct template
{
    const struct template_part *parts;
    unsigned part_n; /* 0: the text is empty */
};

/* Whether it is the same in every session; *text is it then. */
bool template_is_constant(const struct template *template, struct value *text);
/* Makes the text for the session, lent until it has ended. What is missing is left out. -1 without
 * memory. */
int template_value(struct fb_conn *conn, const struct template *template, struct value *out);
/* Returns the value of one part. */
struct value template_part_value(struct fb_conn *conn, const struct template_part *part);

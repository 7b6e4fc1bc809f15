/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of a template in a session. A text with a single part is not copied. */
#include "text/template.h"

#include "session/record.h"

#include <string.h>

bool template_is_constant(const struct template *template, struct value *text)
{
    const struct template_part *part = template->parts;

    *text = value_found("", 0);
    if (template->part_n == 0)
        return true;
    if (template->part_n > 1 || part->text.state == VALUE_UNKNOWN)
        return false;
    *text = part->text;
    return true;
}

static struct value template_capture(struct fb_conn *conn, unsigned i)
{
    const struct session_record *record = session_record_of(session_client_of(conn));

    if (record == NULL || record->captures == NULL)
        return value_missing();
    return record->captures->at[i];
}

struct value template_part_value(struct fb_conn *conn, const struct template_part *part)
{
    if (part->text.state != VALUE_UNKNOWN)
        return part->text;
    return part->variable != NULL ? *variable_value(conn, part->variable)
                                  : template_capture(conn, part->capture);
}

int template_value(struct fb_conn *conn, const struct template *template, struct value *out)
{
    struct value parts[TEMPLATE_PARTS_MAX];
    size_t n = 0, own_n = 0;
    char *text;

    assert(template->part_n <= TEMPLATE_PARTS_MAX);
    *out = value_found("", 0);
    for (unsigned i = 0; i < template->part_n; i++) {
        parts[i] = template_part_value(conn, &template->parts[i]);
        own_n += own_n == n ? parts[i].own_n : 0;
        n += parts[i].n;
    }
    if (template->part_n == 1)
        *out = value_found(parts[0].p, parts[0].n);
    out->own_n = (uint8_t)(own_n < VALUE_OWN_MOST ? own_n : VALUE_OWN_MOST);
    if (template->part_n <= 1)
        return 0;
    text = n <= VALUE_MOST ? session_keep(conn, n) : NULL;
    if (text == NULL)
        return -1;
    out->p = text;
    out->n = (uint32_t)n;
    for (unsigned i = 0; i < template->part_n; i++) {
        memcpy(text, parts[i].p, parts[i].n);
        text += parts[i].n;
    }
    return 0;
}

void captures_set(struct fb_conn *conn, const struct captures *captures)
{
    struct session_record *record = session_record_make(session_client_of(conn));

    if (record != NULL)
        record->captures = captures;
}

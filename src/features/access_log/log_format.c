/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the lines of access logs. Values are worked out as the line needs them, once a session;
 * those that need no escaping are written where they stay, without memory of the session. */
#include "features/access_log/log_format.h"

#include <assert.h>
#include <string.h>

static char *write_text(char *p, char *end, const char *text, size_t n)
{
    if ((size_t)(end - p) < n)
        return NULL;
    memcpy(p, text, n);
    return p + n;
}

/* A variable that is not found is "-", as in nginx; in JSON, in a path and without escaping it is
 * nothing. */
static char *write_missing(enum log_escape escape, char *p, char *end)
{
    return escape == LOG_ESCAPE_DEFAULT ? write_text(p, end, "-", 1) : p;
}

char *log_format_write(const struct line_format *format, struct fb_conn *conn, char *p, char *end)
{
    const struct template_part *part = format->parts, *stop = part + format->part_n;

    assert(p <= end);
    for (; part < stop && p != NULL; part++) {
        const struct variable *variable = part->variable;
        struct value value;

        if (variable != NULL && variable->text != NULL && format->escape != LOG_ESCAPE_PATH &&
            (size_t)(end - p) >= VARIABLE_TEXT_MAX) {
            p = variable->text(conn, p);
            continue;
        }
        value = template_part_value(conn, part);
        if (part->text.state != VALUE_UNKNOWN)
            p = write_text(p, end, value.p, value.n);
        else if (value.state == VALUE_FOUND)
            p = log_escape_write(format->escape, p, end, value.p, value.n);
        else
            p = write_missing(format->escape, p, end);
    }
    return p;
}

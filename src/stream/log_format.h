/* SPDX-License-Identifier: BSD-2-Clause */
/* A `log_format`: texts and variables, of which a session's line is made. Data of the
 * configuration, which settings/log_format.c fills in. */
#pragma once

#include "stream/log_escape.h"
#include "stream/template.h"

struct line_format {
    struct line_format *next; /* in the order of the file */
    const char *name;
    enum log_escape escape;
    unsigned part_n;
    const struct template_part *parts;
};

/* Writes the session's line, without a newline, and returns its end; NULL where `end` comes
 * before. */
char *log_format_write(const struct line_format *format, struct fb_conn *conn, char *p, char *end);

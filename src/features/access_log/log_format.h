/* SPDX-License-Identifier: BSD-2-Clause */
/* A `log_format`: texts and variables, of which a session's line is made. Data of the
 * configuration. */
#pragma once

#include "features/access_log/log_escape.h"
#include "settings/setting.h"
#include "text/template.h"

#include <bsd/sys/tree.h>

struct line_format {
    RB_ENTRY(line_format) node; /* among the configuration's, by name */
    const char *name;
    enum log_escape escape;
    unsigned part_n;
    const struct template_part *parts;
};

RB_HEAD(line_formats, line_format);

/* Writes the session's line, without a newline, and returns its end; NULL where `end` comes
 * before. */
char *log_format_write(const struct line_format *format, struct fb_conn *conn, char *p, char *end);

/* The directive: all strings become one list of texts and variables. */
int log_format_set(struct apply *apply, const struct conf_directive *directive, void *field);
/* Returns the format of the name, or NULL. */
const struct line_format *log_format_find(const struct apply *apply, const char *name);
/* Returns the format with the name nearest to an unknown name, or NULL. */
const char *log_format_nearest(const struct apply *apply, const char *name);

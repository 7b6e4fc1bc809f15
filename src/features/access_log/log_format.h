/* SPDX-License-Identifier: BSD-2-Clause */
/* A `log_format`: texts and variables, for the line of a session, and the path of an access log.
 * Values are escaped as nginx does it; the text of a format is the operator's, and never escaped.
 * Data of the configuration. */
#pragma once

#include "settings/setting.h"
#include "text/template.h"

#include <bsd/sys/tree.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum log_escape {
    LOG_ESCAPE_DEFAULT, /* quotes, backslashes, and what is not printable ASCII, become \xHH */
    LOG_ESCAPE_JSON,    /* quotes, backslashes and bytes below 0x20, as JSON has them */
    LOG_ESCAPE_NONE,
    LOG_ESCAPE_PATH, /* makes "_" of control characters, and of steps to a different directory */
};

/* Most bytes that become of one. */
#define LOG_ESCAPED_MAX 6

/* Writes the n bytes at `s`, escaped, and returns the end; NULL where `end` comes before. */
char *log_escape_write(enum log_escape escape, char *p, char *end, const char *s, size_t n);

struct line_format {
    RB_ENTRY(line_format) node; /* among the configuration's, by name */
    const char *name;
    enum log_escape escape;
    unsigned part_n;
    const struct template_part *parts;
    const bool *values; /* a flag for each part that is a whole value of JSON; NULL: none is */
};

RB_HEAD(line_formats, line_format);

/* Writes the session's line, without a newline; returns its end, or NULL for want of room. */
char *log_format_write(const struct line_format *format, struct fb_conn *conn, char *p, char *end);

/* The directive: all strings become one list of texts and variables. */
int log_format_set(struct apply *apply, const struct conf_directive *directive, void *field);
/* Makes the format that is ready by name, at its first use, if the word is the name: a `log_format`
 * of this name, wherever it stands, goes before. -1 after a report. */
int log_format_use(struct apply *apply, const struct conf_word *word);
/* Returns the format of the word's name; NULL after a report. */
const struct line_format *log_format_find(struct apply *apply, const struct conf_word *word);

/* A path never leads out of the directory before the first variable, nor into a directory below: a
 * "/" in a value, or a control character, becomes "_", as do the dots of the names "." and "..";
 * an empty name is "_", and a long name is cut. */
struct access_path {
    struct line_format format; /* with LOG_ESCAPE_PATH */
    const char *directory;     /* before all names with variables, without the slash */
    const struct conf_word *word;
};

/* Makes the session's path; -1 with errno where it is too long. */
int access_path_make(const struct access_path *path, struct fb_conn *conn, char out[PATH_MAX]);
/* Makes the names behind the first n bytes of a path harmless; -1 with errno. */
int access_path_clean(const char *path, size_t n, char out[PATH_MAX]);

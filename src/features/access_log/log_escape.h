/* SPDX-License-Identifier: BSD-2-Clause */
/* Escaping of the values in an access log's line, as nginx does it. The text of a format is the
 * operator's, and never escaped. */
#pragma once

#include <stddef.h>

enum log_escape {
    LOG_ESCAPE_DEFAULT, /* quotes, backslashes, and what is not printable ASCII, become \xHH */
    LOG_ESCAPE_JSON,    /* escapes as a string of JSON has to; other bytes stay as they are */
    LOG_ESCAPE_NONE,
    LOG_ESCAPE_PATH, /* makes "_" of control characters, and of steps to a different directory */
};

/* Most bytes that become of one. */
#define LOG_ESCAPED_MAX 6

/* Writes the n bytes at `s`, escaped, and returns the end; NULL where `end` comes before. */
char *log_escape_write(enum log_escape escape, char *p, char *end, const char *s, size_t n);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of access logs with variables. A value never leads out of the directory before the first
 * variable, nor into a different directory: a "/" in a value, or a control character, becomes "_",
 * as do the dots of the names "." and "..", and an empty name is "_". A name longer than a file's
 * can be is cut. */
#pragma once

#include "features/access_log/log_format.h"

#include <limits.h>

struct conf_word;

struct access_path {
    struct line_format format; /* with LOG_ESCAPE_PATH */
    const char *directory;     /* before all names with variables, without the slash */
    const struct conf_word *word;
};

/* Makes the session's path; -1 with errno where it is too long. */
int access_path_make(const struct access_path *path, struct fb_conn *conn, char out[PATH_MAX]);
/* Makes the names behind the first n bytes of a path harmless; -1 with errno. */
int access_path_clean(const char *path, size_t n, char out[PATH_MAX]);

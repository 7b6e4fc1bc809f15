/* SPDX-License-Identifier: BSD-2-Clause */
/* The tree of one text, and the report of a call that failed. Private to conf/. */
#pragma once

#include "conf/conf.h"

/* Parses the file's text up to its end or the first mistake; `unit` is what the text is, "file" or
 * "parameter". NULL, after a report, when memory has run out before there was a tree. */
struct fb_conf_block *fb_conf_parse(
    struct fb_conf_source *source, const struct fb_conf_file *file, const char *unit);

/* Reports that a call failed on a file that `from` names (NULL: the main file), as a warning where
 * the file may not be read and the source is lenient. */
void fb_conf_call_failed(struct fb_conf_source *source, const struct fb_conf_word *from,
    const char *call, const char *path, int error);

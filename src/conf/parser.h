/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser of one text, and the report of a system call that failed on a file. Private to conf/.
 * It follows no include (include.c) and knows no directive by name. */
#pragma once

#include "conf/conf.h"

/* Parses the file's text up to its end or the first mistake; `unit` is what the text is, "file" or
 * "parameter". NULL, after a report, when memory has run out before there was a tree. */
struct conf_block *conf_parse(
    struct conf_source *source, const struct conf_file *file, const char *unit);

/* Reports that a call failed on a file that `from` names (NULL: the main file), as a warning where
 * the file may not be read and the source is lenient. */
void conf_call_failed(struct conf_source *source, const struct conf_word *from, const char *call,
    const char *path, int error);

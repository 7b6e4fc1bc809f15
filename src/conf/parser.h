/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser of a text. Private to conf/. Follows no include, and knows no directive by name. */
#pragma once

#include "conf/conf.h"

/* Parses the file's text up to its end or the first mistake; `unit` is what the text is, "file" or
 * "parameter". NULL, after a report, when memory has run out before there was a tree. */
struct conf_block *conf_parse(
    struct conf_source *source, const struct conf_file *file, const char *unit);

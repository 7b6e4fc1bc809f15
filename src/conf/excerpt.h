/* SPDX-License-Identifier: BSD-2-Clause */
/* Excerpts: the line of a file that contains a word, with a mark below the word, for an error
 * message. Private to conf/. An excerpt contains no byte that a terminal would act on. */
#pragma once

#include "base/arena.h"
#include "conf/conf.h"

/* The line, clipped around the word, and below it a line that marks the word with "^~~~"; each
 * ended by "\n", and without any byte that a terminal would act on. NULL where there is nothing to
 * show: an empty line, a place that the file does not have, or no memory. */
const char *conf_excerpt(struct arena *arena, const struct conf_word *word);

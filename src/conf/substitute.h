/* SPDX-License-Identifier: BSD-2-Clause */
/* Environment variables in a word, written as the shell writes them:
 *
 *   ${NAME}            its value
 *   ${NAME:-default}   the default where it is not set or empty
 *   ${NAME-default}    the default where it is not set
 *   $${NAME}           the text ${NAME}
 *
 * A NAME consists of capital letters, digits and underscores. All else stays as it is: ${name} is
 * left for programs that have variables of their own. A default may hold variables again. */
#pragma once

#include "conf/conf.h"

#include <stdbool.h>

/* Whether there is anything in the word to be replaced. */
bool substitute_finds(const struct conf_word *word);
/* Replaces the variables of a word by their values, plain text: the result stays one word, and its
 * `plain` marks the values. `environment` ends with NULL. -1 after a report. */
int substitute_variables(struct conf_source *source, const struct conf_word *word,
    const char *const *environment, struct conf_word *out);

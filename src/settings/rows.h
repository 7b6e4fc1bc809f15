/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of all tables of directives, by their names. */
#pragma once

#include "settings/setting.h"

struct apply;

/* Returns the row of the name in one of the contexts `at`, or NULL. */
const struct setting *rows_find(const struct apply *apply, const char *name, unsigned at);
/* Reports a directive without a row in the present block, and suggests a name. */
void rows_report_unknown(struct apply *apply, const struct conf_directive *directive);
/* Reports that the directive lacks its ";", if a line among the arguments up to `arg`, a wrong one,
 * begins with the name of a directive of this context; returns whether so. */
bool rows_is_unterminated(
    struct apply *apply, const struct conf_directive *directive, unsigned arg);
/* Places of words of HAProxy's configuration (haproxy_words.def). */
enum haproxy_place { HAPROXY_DIRECTIVE, HAPROXY_SERVER, HAPROXY_CHECK };

#define HAPROXY_WORD "a word of HAProxy: " /* text before the hint */

/* Returns the replacement for a word, perhaps with "=" and a value; NULL: no word of HAProxy's. */
const char *rows_haproxy_hint(enum haproxy_place place, const char *word);

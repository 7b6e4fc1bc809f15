/* SPDX-License-Identifier: BSD-2-Clause */
/* Hints for who writes a word of HAProxy's configuration: the rows of haproxy_words.def. */
#pragma once

/* Places of words. */
enum haproxy_place { HAPROXY_DIRECTIVE, HAPROXY_SERVER, HAPROXY_CHECK };

/* Returns what is to be written instead of the word, which may have a value behind "="; NULL: it is
 * no word of HAProxy's in this place. */
const char *haproxy_hint(enum haproxy_place place, const char *word);

#define HAPROXY_WORD "this is a word of HAProxy: " /* text before the hint */

/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables in the configuration: texts with variables, definitions, and undefined variables. */
#pragma once

#include "session/server.h"
#include "settings/setting.h"
#include "text/template.h"

struct scope;
struct server;

/* Reads a text with variables, used from now on; the text is the word, or the end of the word. */
const struct template *template_of(
    struct apply *apply, const struct conf_word *word, const char *text);
/* Returns a variable of the text with this prefix, or the source of a map, through so many maps;
 * NULL: no such variable. All variables are known. */
const struct variable *template_find(
    const struct template *template, const char *prefix, unsigned maps);
/* Return the variable that the word names ("$name"), used or defined. A definition replaces an
 * earlier one; `get` and `arg` are the caller's to set. */
struct variable *template_variable(struct apply *apply, const struct conf_word *word);
struct variable *template_define(struct apply *apply, const struct conf_word *word);
/* Returns the variable of the name, used by the word's directive. */
struct variable *template_use(
    struct apply *apply, const struct conf_word *word, const char *name, size_t n);
/* Prepare the variables, before the servers; report undefined variables, at the end. */
void template_begin(struct apply *apply);
void template_finish(struct apply *apply);

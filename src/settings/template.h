/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables in the configuration: texts with variables, directives that define variables, and used
 * but undefined variables. Private to settings/. */
#pragma once

#include "session/server.h"
#include "settings/setting.h"
#include "text/template.h"

struct scope;
struct server;

/* Reads a text with variables, which count as used from now on; the text is the word's, or a part
 * of the word's. NULL after a report at the word. */
const struct template *template_of(
    struct apply *apply, const struct conf_word *word, const char *text);
/* Returns a variable whose name begins so, and that the text uses, itself or as the source of a
 * map, of maps that are so deep; NULL: it uses none. All variables are known. */
const struct variable *template_find(
    const struct template *template, const char *prefix, unsigned maps);
/* Returns the variable that the word names ("$name"), and that is used or defined; NULL after a
 * report. A definition replaces an earlier one; `get` and `arg` are then the caller's to set. */
struct variable *template_variable(struct apply *apply, const struct conf_word *word);
struct variable *template_define(struct apply *apply, const struct conf_word *word);
/* Returns the variable of that name, used by a directive that the word belongs to; NULL after a
 * report. */
struct variable *template_use(
    struct apply *apply, const struct conf_word *word, const char *name, size_t n);
/* Prepares the variables of the configuration, before the servers; and reports undefined variables,
 * at the end. */
void template_begin(struct apply *apply);
void template_finish(struct apply *apply);

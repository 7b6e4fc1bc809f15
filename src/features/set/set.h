/* SPDX-License-Identifier: BSD-2-Clause */
/* `set`: values that a server gives to variables of sessions, before access and limits. */
#pragma once

#include "settings/setting.h"
#include "text/template.h"

struct regex;

struct set_command {
    const struct set_command *next; /* in the order of the configuration */
    const struct variable *variable;
    const struct template *value;
};

/* The feature's struct of a server: its commands. */
struct set_commands {
    struct set_command *first, *last;
};

/* Defines the variables of an expression's named captures; `out` has room for REGEX_NAMES_MAX. -1
 * after a report. */
int set_define_captures(struct apply *apply, const struct conf_word *word,
    const struct regex *regex, const struct variable **out);

/* SPDX-License-Identifier: BSD-2-Clause */
/* `set`: values that a server gives to variables of sessions, before access and limits. */
#pragma once

#include "settings/setting.h"
#include "text/template.h"

struct set_command {
    const struct set_command *next; /* in the order of the configuration */
    const struct variable *variable;
    const struct template *value;
};

/* The feature's struct of a server: its commands. */
struct set_commands {
    struct set_command *first, *last;
};

/* Works out the value of a variable that only captures set, where none was set: missing. */
int set_get_missing(struct fb_conn *conn, const struct variable *variable, struct value *value);
/* Returns the variable of the word ("$name"), which sessions can set: an unset value is worked out
 * by the getter of another definition, or else by `get`. NULL after a report. */
struct variable *set_define(struct apply *apply, const struct conf_word *word,
    int (*get)(struct fb_conn *conn, const struct variable *variable, struct value *value));

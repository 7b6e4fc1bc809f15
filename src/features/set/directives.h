/* SPDX-License-Identifier: BSD-2-Clause */
/* `set`, and other values that a session gives to variables while it lasts. Private to
 * settings/. */
#pragma once

#include "features/set/set.h"
#include "settings/setting.h"

struct scope;

/* The feature's struct of a server is a struct set_commands. */
/* Returns the variable that the word names ("$name"), which something sets in sessions: what it is
 * where nothing has set it is worked out by another definition's getter, or else by this one. NULL
 * after a report. */
struct variable *set_define(struct apply *apply, const struct conf_word *word,
    int (*get)(struct fb_conn *conn, const struct variable *variable, struct value *value));

/* SPDX-License-Identifier: BSD-2-Clause */
/* `set`: values that a server gives to variables of its sessions, before it looks whether they are
 * allowed. Only data; settings/ fills it in. */
#pragma once

#include "text/template.h"

struct set_command {
    const struct set_command *next; /* in the order of the configuration */
    const struct variable *variable;
    const struct template *value;
};

/* The list of a server's commands. */
struct set_commands {
    struct set_command *first, *last;
};

/* Works out what a variable has that only `set` defines, where it was not set: nothing. */
int set_get_nothing(struct fb_conn *conn, const struct variable *variable, struct value *value);
/* The same of a variable that only captures set: there is none. */
int set_get_missing(struct fb_conn *conn, const struct variable *variable, struct value *value);
/* Runs the commands in a session; `arg` is the first. 0, or the status of a failure. */
unsigned set_run(struct fb_conn *conn, const void *arg);

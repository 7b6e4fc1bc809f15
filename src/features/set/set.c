/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets variables in their order; a later command sees what an earlier one has set. */
#include "features/set/set.h"

#include "session/phases.h"
#include "session/record.h"

int set_get_nothing(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    (void)conn;
    (void)variable;
    *value = value_found("", 0);
    return 0;
}

int set_get_missing(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    (void)conn;
    (void)variable;
    *value = value_missing();
    return 0;
}

unsigned set_run(struct fb_conn *conn, const void *arg)
{
    const struct set_command *command = arg;
    struct value value;

    assert(command != NULL);
    for (; command != NULL; command = command->next) {
        if (command->variable->index == 0) /* nothing uses it */
            continue;
        assert(command->value != NULL);
        if (template_value(conn, command->value, &value) == -1)
            return STATUS_INTERNAL;
        variable_set(conn, command->variable, value);
    }
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets variables in order, before access and limits of a session. */
#include "features/set/set.h"

#include "base/check.h"
#include "features/features.h"
#include "session/record.h"
#include "session/server.h"
#include "settings/template.h"
#include "text/regex.h"

/* Works out the value of a variable that only `set` defines, where none was set: nothing. */
static int get_nothing(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    (void)conn;
    (void)variable;
    *value = value_found("", 0);
    return 0;
}

/* Leaves a variable that only captures set missing, where none was set. */
static int get_missing(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    (void)conn;
    (void)variable;
    (void)value;
    return 0;
}

/* Runs the commands in a session; `arg` is the first. 0, or the status of a failure. */
static unsigned run_commands(struct fb_conn *conn, const void *arg)
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

/* Returns the variable of the word ("$name"), settable by sessions; `get` works an unset value out
 * where no other definition does. NULL after a report. */
static struct variable *define_settable(struct apply *apply, const struct conf_word *word,
    int (*get)(struct fb_conn *conn, const struct variable *variable, struct value *value))
{
    struct variable *variable = template_define(apply, word);

    if (variable != NULL && variable->get == NULL)
        variable->get = get;
    return variable;
}

int set_define_captures(struct apply *apply, const struct conf_word *word,
    const struct regex *regex, const struct variable **out)
{
    for (unsigned i = 0; i < regex_names(regex); i++) {
        struct conf_word name = *word;

        name.text = arena_printf(apply->cycle->arena, "$%s", regex_name(regex, i));
        if (name.text == NULL)
            report_error(apply->report, NULL, "out of memory");
        if (name.text == NULL || (out[i] = define_settable(apply, &name, get_missing)) == NULL)
            return -1;
    }
    return 0;
}

static int set_command(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct set_commands *commands = field;
    struct set_command *command = apply_alloc(apply, sizeof(*command));

    if (command == NULL)
        return -1;
    command->variable = define_settable(apply, &directive->args[0], get_nothing);
    command->value = template_of(apply, &directive->args[1], directive->args[1].text);
    if (command->variable == NULL || command->value == NULL)
        return -1;
    if (commands->last != NULL)
        commands->last->next = command;
    else
        commands->first = command;
    commands->last = command;
    return 0;
}

static bool has_used_command(const struct set_commands *commands)
{
    const struct set_command *command = commands->first;

    while (command != NULL && command->variable->index == 0)
        command = command->next;
    return command != NULL;
}

static void set_finish(struct apply *apply, struct scope *stream)
{
    const struct scope *scope;

    STAILQ_FOREACH (scope, &stream->servers, link) {
        const struct set_commands *commands = feature_values(scope, FEATURE_SET);

        if (has_used_command(commands))
            feature_add_handler(
                apply, scope->server, PHASE_POST_ACCEPT, run_commands, commands->first);
    }
}

static const struct setting rows[] = {
    { "set", CONTEXT_SERVER, 2, 2, .set = set_command, .repeats = true, .unset = "none" },
    { .name = NULL },
};

const struct feature set_feature = {
    .name = "set",
    .rows = rows,
    .server_size = sizeof(struct set_commands),
    .finish = set_finish,
};

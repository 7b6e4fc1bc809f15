/* SPDX-License-Identifier: BSD-2-Clause */
/* `set`: a server's commands, which its sessions run before they are allowed or limited. */
#include "features/set/directives.h"

#include "base/check.h"
#include "features/features.h"
#include "settings/template.h"

struct variable *set_define(struct apply *apply, const struct conf_word *word,
    int (*get)(struct fb_conn *conn, const struct variable *variable, struct value *value))
{
    struct variable *variable = template_define(apply, word);

    if (variable != NULL && variable->get == NULL)
        variable->get = get;
    return variable;
}

static int set_variable(struct apply *apply, const struct setting *setting,
    const struct conf_directive *directive, void *field)
{
    struct set_commands *commands = field;
    struct set_command *command = apply_alloc(apply, sizeof(*command));

    (void)setting;
    if (command == NULL)
        return -1;
    command->variable = set_define(apply, &directive->args[0], set_get_nothing);
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

static bool is_used(const struct set_commands *commands)
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

        if (is_used(commands))
            phase_add(apply, scope->server, PHASE_POST_ACCEPT, set_run, commands->first);
    }
}

static const struct setting rows[] = {
    { "set", CONTEXT_SERVER, 2, 2, .set = set_variable, .repeats = true, .unset = "none" },
    { .name = NULL },
};

const struct feature set_feature = {
    .name = "set",
    .rows = rows,
    .server_size = sizeof(struct set_commands),
    .finish = set_finish,
};

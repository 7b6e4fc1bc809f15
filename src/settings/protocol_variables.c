/* SPDX-License-Identifier: BSD-2-Clause */
/* The variables that protocols define. Each is there from the beginning of stream {}, so that no
 * directive can define another of its name; one that nothing uses costs a session nothing. */
#include "settings/apply.h"
#include "settings/protocol.h"
#include "text/variable.h"

#include <string.h>

/* Defines one variable; -1 after a report. */
static int define(struct apply *apply, const fb_protocol *protocol, uint32_t i)
{
    const fb_variable_definition *definition = &protocol->variables[i];
    struct variable *variable = variables_add(apply->cycle->stream.variables, apply->cycle->arena,
        definition->name, strlen(definition->name));

    if (variable == NULL) {
        report_error(apply->report, NULL, "out of memory");
        return -1;
    }
    if (variable->get != NULL) {
        report_error(apply->report, &apply->stream->name,
            "protocol \"%s\" defines the variable \"%s\", which is another one's", protocol->name,
            variable->name);
        return -1;
    }
    variable->get = variables_protocol_get;
    variable->arg = protocol;
    variable->number = i;
    if (definition->flags & FB_VARIABLE_VOLATILE)
        variable->flags = VARIABLE_VOLATILE;
    return 0;
}

void protocol_define_variables(struct apply *apply)
{
    for (size_t i = 0; apply->cycle->protocols[i] != NULL; i++)
        for (uint32_t j = 0; j < apply->cycle->protocols[i]->variable_n; j++)
            if (define(apply, apply->cycle->protocols[i], j) == -1)
                return;
}

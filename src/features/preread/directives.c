/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads `ssl_preread` and its bounds. */
#include "features/preread/preread.h"

#include "features/features.h"
#include "settings/set_value.h"
#include "settings/template.h"

#include <string.h>

#define PREFIX "ssl_preread_"

static void preread_finish(struct apply *apply, struct scope *server)
{
    const struct preread_values *values = feature_values(server, FEATURE_PREREAD);

    if (values->ssl_preread)
        phase_add(apply, server->server, PHASE_PREREAD, preread_begin, NULL);
}

static void preread_warn(struct apply *apply, const struct scope *stream)
{
    struct variables *variables = apply->cycle->stream.variables;
    struct variable *variable = NULL;
    const struct scope *server;

    STAILQ_FOREACH (server, &stream->servers, link) {
        const struct preread_values *values = feature_values(server, FEATURE_PREREAD);

        if (values->ssl_preread)
            return;
    }
    while ((variable = variables_next(variables, variable)) != NULL)
        if (variable->index != 0 && strncmp(variable->name, PREFIX, strlen(PREFIX)) == 0)
            report_warn(apply->report, variable->used_at,
                "$%s has no value in any session: no server has \"ssl_preread on\"",
                variable->name);
}

#define VALUE(member) .offset = offsetof(struct preread_values, member), .size = sizeof(int64_t)

static const struct setting rows[] = {
    { "preread_buffer_size", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_size,
        VALUE(buffer_size), .least_value = 1, .greatest_value = INT64_MAX, .initial = "16k" },
    { "preread_timeout", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_msec, VALUE(timeout),
        .least_value = 1, .greatest_value = INT64_MAX, .initial = "30s" },
    { "ssl_preread", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_flag, VALUE(ssl_preread),
        .initial = "off" },
    { .name = NULL },
};

const struct feature preread_feature = {
    .name = "preread",
    .rows = rows,
    .server_size = sizeof(struct preread_values),
    .variables = variables_preread,
    .finish_server = preread_finish,
    .warn = preread_warn,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* `stream {}` and `server {}`: a loop over the features, after the main context. */
#include "session/stream.h"
#include "base/check.h"
#include "settings/blocks.h"
#include "settings/feature.h"
#include "settings/listen.h"
#include "settings/protocol.h"
#include "settings/template.h"

static int set_server(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct scope *stream = apply->scope;
    struct scope *scope = apply_alloc(apply, sizeof(*scope));
    struct server *server = apply_alloc(apply, sizeof(*server));
    unsigned errors;

    (void)field;
    if (scope == NULL || server == NULL)
        return -1;
    server->variables = apply->cycle->stream.variables;
    assert(stream->at == CONTEXT_STREAM);
    scope->server = server;
    scope->settings = &server->settings;
    scope->features = server->features =
        feature_make_structs(apply, offsetof(struct feature, server_size));
    if (scope->features == NULL)
        return -1;
    STAILQ_INSERT_TAIL(&stream->servers, scope, link);
    STAILQ_INSERT_TAIL(&apply->cycle->stream.servers, server, link);
    errors = apply->report->error_n;
    apply_scope(apply, scope, CONTEXT_SERVER, directive);
    stream->server_errors += apply->report->error_n - errors;
    return 0;
}

const struct setting stream_rows[] = {
    { "listen", CONTEXT_SERVER, 1, 32, .set = listen_set, .repeats = true, .unset = "none" },
    { "server", CONTEXT_STREAM, 0, 0, .set = set_server, .block = true, .repeats = true,
        .unset = "none" },
    { .name = NULL },
};

/* Stores the block until all modules are loaded, wherever load_module stands. */
int stream_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    (void)field;
    apply->stream = directive;
    return 0;
}

/* Makes the values of stream {} before the first directive; false after a report. */
static bool begin_stream(struct apply *apply, struct scope *scope)
{
    struct stream_settings *stream = &apply->cycle->stream;

    scope->settings = apply_alloc(apply, sizeof(*scope->settings));
    scope->confs = apply_alloc(apply, STREAM_PROTOCOLS_MAX * sizeof(*scope->confs));
    scope->finished = apply_alloc(apply, STREAM_PROTOCOLS_MAX * sizeof(*scope->finished));
    scope->features = feature_make_structs(apply, offsetof(struct feature, server_size));
    stream->features = feature_make_structs(apply, offsetof(struct feature, conf_size));
    stream->variables->tables = feature_variables(apply);
    return scope->settings != NULL && scope->confs != NULL && scope->finished != NULL &&
           scope->features != NULL && stream->features != NULL && stream->variables->tables != NULL;
}

/* Gives a server the defaults of stream {}, and has the features finish the server. */
static void finish_server(struct apply *apply, struct scope *server)
{
    const struct feature *const *features = apply->options->features;

    apply_defaults(apply, server, apply->tables[TABLE_STREAM]);
    protocol_finish(apply, server);
    for (unsigned i = 0; features[i] != NULL; i++)
        if (features[i]->finish_server != NULL)
            features[i]->finish_server(apply, server);
}

void stream_apply(struct apply *apply)
{
    const struct feature *const *features = apply->options->features;
    struct scope *scope = apply_alloc(apply, sizeof(*scope));
    struct scope *server;

    assert(apply->stream != NULL && apply->scope->at == CONTEXT_MAIN);
    if (scope == NULL || !begin_stream(apply, scope))
        return;
    template_begin(apply);
    protocol_define_variables(apply);
    for (unsigned i = 0; features[i] != NULL; i++)
        if (features[i]->begin != NULL)
            features[i]->begin(apply);
    apply_scope(apply, scope, CONTEXT_STREAM, apply->stream);
    apply->stream_scope = scope;

    /* the end of the block, because a directive of the stream after a server applies to it, too */
    STAILQ_FOREACH (server, &scope->servers, link)
        finish_server(apply, server);
    if (apply_is_whole(apply, scope) && scope->server_errors == 0)
        template_finish(apply);
    for (unsigned i = 0; features[i] != NULL; i++)
        if (features[i]->finish != NULL)
            features[i]->finish(apply, scope);
    ports_build(apply, scope);
    for (unsigned i = 0; features[i] != NULL; i++)
        if (features[i]->bind != NULL)
            features[i]->bind(apply, scope);
    stats_declare(apply);
}

void stream_warn(struct apply *apply)
{
    const struct feature *const *features = apply->options->features;

    if (apply->stream_scope == NULL || apply->cut || apply->cycle->source.partial)
        return;
    for (unsigned i = 0; features[i] != NULL; i++)
        if (features[i]->warn != NULL)
            features[i]->warn(apply, apply->stream_scope);
}

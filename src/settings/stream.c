/* SPDX-License-Identifier: BSD-2-Clause */
/* `stream {}` and `server {}`. They are applied after the main context, when all modules are
 * loaded. */
#include "base/check.h"
#include "event/file_aio.h"
#include "settings/access.h"
#include "settings/access_log.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/circles.h"
#include "settings/error_log.h"
#include "settings/limit_conn.h"
#include "settings/listen.h"
#include "settings/match.h"
#include "settings/protocol.h"
#include "settings/realip.h"
#include "settings/server_name.h"
#include "settings/set.h"
#include "settings/set_value.h"
#include "settings/template.h"
#include "settings/upstream.h"
#include "settings/warnings.h"

#include "stream/session_preread.h"
#include "stream/stream.h"

#include <limits.h>
#include <string.h>

#define SERVER(member) .offset = offsetof(struct server_settings, member), .size = sizeof(int64_t)

/* Sets the pool of "threads=POOL"; `text` is what stands behind "threads". */
static int set_aio_pool(struct apply *apply, const struct conf_directive *directive,
    const char *text, struct aio_setting *aio)
{
    const char *name = text + 1;

    aio->way = FB_AIO_THREADS;
    aio->pool = core_find_pool(&apply->cycle->core, name);
    if (*name == '\0')
        return set_bad_value(apply, directive, 0, "expected the name of a pool after \"threads=\"");
    if (aio->pool == NULL)
        return set_bad_value(
            apply, directive, 0, "there is no \"thread_pool\" of the name \"%s\"", name);
    return 0;
}

static SETTER(set_aio)
{
    static const char *const names[] = {
        [FB_AIO_OFF] = "off",
        [FB_AIO_THREADS] = "threads",
        [FB_AIO_ON] = "on",
        NULL,
    };
    const char *text = directive->args[0].text;
    size_t n = strlen(names[FB_AIO_THREADS]);
    struct aio_setting *aio = field;

    (void)setting;
    if (strncmp(text, names[FB_AIO_THREADS], n) == 0 && text[n] == '=')
        return set_aio_pool(apply, directive, text + n, aio);
    if (set_choice(apply, directive, names, "\"on\", \"threads\" or \"off\"", &aio->way) == -1)
        return -1;
    aio->pool = NULL;
    if (aio->way == FB_AIO_ON && !file_aio_built())
        return set_bad_value(
            apply, directive, 0, "this build has no kernel AIO: use \"threads\" instead");
    return 0;
}

/* The alignment of memory is a power of two. */
static SETTER(set_alignment)
{
    const int64_t *alignment = field;

    if (set_size(apply, setting, directive, field) == -1)
        return -1;
    if ((*alignment & (*alignment - 1)) != 0)
        return set_bad_value(apply, directive, 0, "expected a power of two");
    return 0;
}

/* No limit is one that nothing reaches; 0 stands for the protocol's. */
static SETTER(set_output_limit)
{
    if (strcmp(directive->args[0].text, "off") == 0) {
        *(int64_t *)field = INT64_MAX;
        return 0;
    }
    return set_size(apply, setting, directive, field);
}

const struct setting stream_table[] = {
    { "access_log", CONTEXT_STREAM | CONTEXT_SERVER, 1, UCHAR_MAX, .set = access_log_set,
        .repeats = true, .offset = offsetof(struct server_settings, access_logs),
        .size = sizeof(struct access_logs_setting), .initial = "off" },
    { "aio", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_aio,
        .offset = offsetof(struct server_settings, aio), .size = sizeof(struct aio_setting),
        .initial = "off" },
    { "allow", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = access_set, .repeats = true,
        .offset = offsetof(struct server_settings, access), .size = sizeof(struct access_setting *),
        .unset = "none" },
    { "deny", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = access_set, .repeats = true,
        .offset = offsetof(struct server_settings, access), .size = sizeof(struct access_setting *),
        .unset = "none" },
    { "directio_alignment", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_alignment,
        SERVER(directio_alignment), .least_value = 512, .greatest_value = 1024 * 1024,
        .initial = "4k" },
    { "error_log", CONTEXT_STREAM | CONTEXT_SERVER, 1, 3, .set = error_log_set_server,
        .repeats = true, .offset = offsetof(struct server_settings, error_log),
        .size = sizeof(struct error_log_setting *),
        .unset = "@localstatedir@/log/forkbeard/error.log error" },
    { "first_byte_timeout", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_msec,
        SERVER(first_byte_timeout), .initial = "60s" },
    { "geo", CONTEXT_STREAM, 1, 2, .set = geo_set, .block = true, .repeats = true,
        .unset = "none" },
    { "idle_timeout", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_msec, SERVER(idle_timeout),
        .initial = "10m" },
    { "input_limit", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_size, SERVER(input_limit),
        .least_value = 1, .greatest_value = INT64_MAX, .unset = "set by the protocol" },
    { "limit_conn", CONTEXT_STREAM | CONTEXT_SERVER, 2, 2, .set = limit_conn_set, .repeats = true,
        .offset = offsetof(struct server_settings, limit_conns),
        .size = sizeof(struct limit_rule *), .unset = "none" },
    { "limit_conn_dry_run", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_flag,
        SERVER(limit_conn_dry_run), .initial = "off" },
    { "limit_conn_log_level", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1,
        .set = limit_conn_set_log_level, SERVER(limit_conn_log_level), .initial = "error" },
    { "limit_conn_rate", CONTEXT_STREAM | CONTEXT_SERVER, 2, 3, .set = limit_conn_set_rate,
        .repeats = true, .offset = offsetof(struct server_settings, limit_rates),
        .size = sizeof(struct limit_rule *), .unset = "none" },
    { "limit_conn_zone", CONTEXT_STREAM, 2, 2, .set = limit_conn_set_zone, .repeats = true,
        .unset = "none" },
    { "listen", CONTEXT_SERVER, 1, 32, .set = listen_set, .repeats = true, .unset = "none" },
    { "log_format", CONTEXT_STREAM, 2, UCHAR_MAX, .set = log_format_set, .repeats = true,
        .unset = "none" },
    { "map", CONTEXT_STREAM, 2, 2, .set = map_set, .block = true, .repeats = true,
        .unset = "none" },
    { "map_hash_bucket_size", CONTEXT_STREAM, 1, 1, .set = map_set_hash_size, .initial = "64" },
    { "map_hash_max_size", CONTEXT_STREAM, 1, 1, .set = map_set_hash_size, .initial = "2048" },
    { "match", CONTEXT_STREAM, 1, 1, .set = match_set, .block = true, .repeats = true,
        .unset = "none" },
    { "open_log_file_cache", CONTEXT_STREAM | CONTEXT_SERVER, 1, 4, .set = open_log_file_cache_set,
        .offset = offsetof(struct server_settings, log_cache),
        .size = sizeof(const struct access_cache_setting *), .initial = "off" },
    { "output_limit", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_output_limit,
        SERVER(output_limit), .least_value = 64 * 1024, .greatest_value = INT64_MAX,
        .unset = "set by the protocol" },
    { "preread_buffer_size", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_size,
        SERVER(preread_buffer_size), .least_value = 1, .greatest_value = INT64_MAX,
        .initial = "16k" },
    { "preread_timeout", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_msec,
        SERVER(preread_timeout), .least_value = 1, .greatest_value = INT64_MAX, .initial = "30s" },
    { "proxy_protocol_timeout", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_msec,
        SERVER(proxy_protocol_timeout), .least_value = 1, .greatest_value = INT64_MAX,
        .initial = "30s" },
    { "proxy_session_drop", CONTEXT_STREAM | CONTEXT_SERVER, 1, 2, .set = session_lifetime_set_drop,
        .offset = offsetof(struct server_settings, drop), .size = sizeof(struct upstream_drop),
        .initial = "off" },
    { "receive_min_rate", CONTEXT_STREAM | CONTEXT_SERVER, 1, 2, .set = session_lifetime_set_rate,
        .offset = offsetof(struct server_settings, receive_min_rate),
        .size = sizeof(struct rate_setting), .initial = "off" },
    { "receive_timeout", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_msec,
        SERVER(receive_timeout), .initial = "off" },
    { "resolver", CONTEXT_STREAM | CONTEXT_SERVER, 1, UCHAR_MAX, .set = resolver_set,
        .offset = offsetof(struct server_settings, resolver),
        .size = sizeof(const struct names_setting *), .unset = "the system's" },
    { "resolver_timeout", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_msec,
        SERVER(resolver_timeout), .least_value = 1, .greatest_value = INT64_MAX, .initial = "30s" },
    { "server", CONTEXT_STREAM, 0, 0, .set = stream_set_server, .block = true, .repeats = true,
        .unset = "none" },
    { "server_name", CONTEXT_SERVER, 1, UCHAR_MAX, .set = server_name_set, .repeats = true,
        .unset = "none" },
    { "session_lifetime", CONTEXT_STREAM | CONTEXT_SERVER, 1, 3, .set = session_lifetime_set,
        .offset = offsetof(struct server_settings, lifetime),
        .size = sizeof(struct lifetime_setting), .initial = "off" },
    { "set", CONTEXT_SERVER, 2, 2, .set = set_variable,
        .offset = offsetof(struct server_settings, set), .repeats = true, .unset = "none" },
    { "set_real_ip_from", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = realip_set, .repeats = true,
        .offset = offsetof(struct server_settings, trusted), .size = sizeof(struct trusted_setting),
        .unset = "none" },
    { "split_clients", CONTEXT_STREAM, 2, 2, .set = split_clients_set, .block = true,
        .repeats = true, .unset = "none" },
    { "ssl_preread", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_flag, SERVER(ssl_preread),
        .initial = "off" },
    { "tcp_nodelay", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_flag, SERVER(tcp_nodelay),
        .initial = "on" },
    { "upstream", CONTEXT_STREAM, 1, 1, .set = upstream_set, .block = true, .repeats = true,
        .unset = "none" },
    { "variables_hash_bucket_size", CONTEXT_STREAM, 1, 1, .set = map_set_hash_size,
        .initial = "64" },
    { "variables_hash_max_size", CONTEXT_STREAM, 1, 1, .set = map_set_hash_size,
        .initial = "1024" },
    { .name = NULL },
};

void stream_settings_defaults(struct server_settings *settings)
{
    struct cycle cycle = { .arena = NULL };

    memset(settings, 0, sizeof(*settings));
    apply_table_defaults(&cycle, settings, CONTEXT_SERVER, stream_table);
}

SETTER(stream_set_server)
{
    struct scope *stream = apply->scope;
    struct scope *scope = apply_alloc(apply, sizeof(*scope));
    struct server *server = apply_alloc(apply, sizeof(*server));
    unsigned errors;

    (void)setting;
    (void)field;
    if (scope == NULL || server == NULL)
        return -1;
    server->variables = &apply->cycle->stream.variables;
    assert(stream->at == CONTEXT_STREAM);
    scope->server = server;
    scope->settings = &server->settings;
    STAILQ_INSERT_TAIL(&stream->servers, scope, link);
    STAILQ_INSERT_TAIL(&apply->cycle->stream.servers, server, link);
    errors = apply->report->error_n;
    apply_scope(apply, scope, CONTEXT_SERVER, directive);
    stream->server_errors += apply->report->error_n - errors;
    return 0;
}

/* Stores the block until all modules are loaded, wherever load_module stands. */
SETTER(stream_set)
{
    (void)setting;
    (void)field;
    apply->stream = directive;
    return 0;
}

void stream_apply(struct apply *apply)
{
    struct scope *scope = apply_alloc(apply, sizeof(*scope));
    struct scope *server;

    assert(apply->stream != NULL && apply->scope->at == CONTEXT_MAIN);
    if (scope == NULL)
        return;
    scope->settings = apply_alloc(apply, sizeof(*scope->settings));
    scope->confs = apply_alloc(apply, STREAM_PROTOCOLS_MAX * sizeof(*scope->confs));
    scope->finished = apply_alloc(apply, STREAM_PROTOCOLS_MAX * sizeof(*scope->finished));
    if (scope->settings == NULL || scope->confs == NULL || scope->finished == NULL)
        return;
    template_begin(apply);
    protocol_define_variables(apply);
    apply_scope(apply, scope, CONTEXT_STREAM, apply->stream);

    /* the end of the block, because a directive of the stream after a server applies to it, too */
    STAILQ_FOREACH (server, &scope->servers, link) {
        apply_defaults(apply, server, stream_table);
        protocol_finish(apply, server);
        access_finish(apply, server);
        session_lifetime_finish(apply, server);
        limit_conn_finish(apply, server);
        if (server->settings->ssl_preread)
            phase_add(apply, server->server, PHASE_PREREAD, session_preread_begin, NULL);
        error_log_finish_server(apply, server);
    }
    if (scope_is_whole(apply, scope) && scope->server_errors == 0)
        template_finish(apply);
    realip_finish(apply);
    set_finish(apply, scope);
    limit_conn_check(apply, scope);
    access_log_finish(apply, scope);
    resolver_finish(apply, scope);
    upstream_finish(apply, scope);
    ports_build(apply, scope);
    passes_finish(apply, scope);
    circles_check(apply);
    health_checks_finish(apply);
    warnings_of_stream(apply, scope);
}

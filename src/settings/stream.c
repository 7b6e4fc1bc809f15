/* SPDX-License-Identifier: BSD-2-Clause */
/* `stream {}` and `server {}`. They are applied after the main context, when all modules are
 * loaded. */
#include "base/check.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/listen.h"
#include "settings/protocol.h"
#include "settings/set_value.h"

#include "stream/stream.h"

#include <string.h>

#define SERVER(member)                                                                             \
    .offset = offsetof(struct fb_server_settings, member), .size = sizeof(int64_t)

const struct fb_setting fb_stream_table[] = {
    { "first_byte_timeout", FB_AT_STREAM | FB_AT_SERVER, 1, 1, .set = fb_set_msec,
        SERVER(first_byte_timeout), .initial = "60s" },
    { "idle_timeout", FB_AT_STREAM | FB_AT_SERVER, 1, 1, .set = fb_set_msec, SERVER(idle_timeout),
        .initial = "10m" },
    { "listen", FB_AT_SERVER, 1, 32, .set = fb_set_listen, .repeats = true, .unset = "none" },
    { "server", FB_AT_STREAM, 0, 0, .set = fb_set_server, .block = true, .repeats = true,
        .unset = "none" },
    { "tcp_nodelay", FB_AT_STREAM | FB_AT_SERVER, 1, 1, .set = fb_set_flag, SERVER(tcp_nodelay),
        .initial = "on" },
    { .name = NULL },
};

void stream_settings_defaults(struct fb_server_settings *settings)
{
    struct fb_cycle cycle = { .arena = NULL };

    memset(settings, 0, sizeof(*settings));
    apply_table_defaults(&cycle, settings, FB_AT_SERVER, fb_stream_table);
}

FB_SETTER(fb_set_server)
{
    struct fb_frame *stream = apply->scope;
    struct fb_frame *scope = fb_apply_alloc(apply, sizeof(*scope));
    struct fb_server *server = fb_apply_alloc(apply, sizeof(*server));
    unsigned errors;

    (void)setting;
    (void)field;
    if (scope == NULL || server == NULL)
        return -1;
    assert(stream->at == FB_AT_STREAM);
    scope->server = server;
    scope->settings = &server->settings;
    STAILQ_INSERT_TAIL(&stream->servers, scope, link);
    STAILQ_INSERT_TAIL(&apply->cycle->stream.servers, server, link);
    errors = apply->report->error_n;
    fb_apply_inner(apply, scope, FB_AT_SERVER, directive);
    stream->server_errors += apply->report->error_n - errors;
    return 0;
}

/* Keeps the block until all modules are loaded, wherever load_module stands. */
FB_SETTER(fb_set_stream)
{
    (void)setting;
    (void)field;
    apply->stream = directive;
    return 0;
}

void fb_stream_apply(struct fb_apply *apply)
{
    struct fb_frame *scope = fb_apply_alloc(apply, sizeof(*scope));
    struct fb_frame *server;

    assert(apply->stream != NULL && apply->scope->at == FB_AT_MAIN);
    if (scope == NULL)
        return;
    scope->settings = fb_apply_alloc(apply, sizeof(*scope->settings));
    scope->confs = fb_apply_alloc(apply, FB_PROTOCOLS_MAX * sizeof(*scope->confs));
    scope->finished = fb_apply_alloc(apply, FB_PROTOCOLS_MAX * sizeof(*scope->finished));
    if (scope->settings == NULL || scope->confs == NULL || scope->finished == NULL)
        return;
    fb_apply_inner(apply, scope, FB_AT_STREAM, apply->stream);

    /* the end of the block, because what the stream sets after a server holds for it, too */
    STAILQ_FOREACH (server, &scope->servers, link) {
        fb_apply_defaults(apply, server, fb_stream_table);
        protocol_finish(apply, server);
    }
    fb_ports_build(apply, scope);
}

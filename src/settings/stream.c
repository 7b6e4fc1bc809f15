/* SPDX-License-Identifier: BSD-2-Clause */
/* `stream {}` and `server {}`. */
#include "settings/apply.h"

#include "stream/stream.h"

#define SERVER(member)                                                                             \
    .offset = offsetof(struct fb_server_settings, member), .size = sizeof(int64_t)

const struct fb_setting fb_stream_table[] = {
    { "first_byte_timeout", FB_AT_STREAM | FB_AT_SERVER, 1, 1, .set = fb_set_msec,
        SERVER(first_byte_timeout), .initial = "60s" },
    { "idle_timeout", FB_AT_STREAM | FB_AT_SERVER, 1, 1, .set = fb_set_msec, SERVER(idle_timeout),
        .initial = "10m" },
    { "listen", FB_AT_SERVER, 1, 32, .set = fb_set_listen, .repeats = true },
    { "server", FB_AT_STREAM, 0, 0, .set = fb_set_server, .block = true, .repeats = true },
    { "tcp_nodelay", FB_AT_STREAM | FB_AT_SERVER, 1, 1, .set = fb_set_flag, SERVER(tcp_nodelay),
        .initial = "on" },
    { .name = NULL },
};

FB_SETTER(fb_set_server)
{
    struct fb_frame *stream = apply->frame;
    struct fb_frame *frame = fb_apply_alloc(apply, sizeof(*frame));
    struct fb_server *server = fb_apply_alloc(apply, sizeof(*server));
    unsigned errors;

    (void)setting;
    (void)field;
    if (frame == NULL || server == NULL)
        return -1;
    frame->server = server;
    frame->settings = &server->settings;
    STAILQ_INSERT_TAIL(&stream->servers, frame, link);
    STAILQ_INSERT_TAIL(&apply->cycle->stream.servers, server, link);
    errors = apply->report->error_n;
    fb_apply_inner(apply, frame, FB_AT_SERVER, directive);
    stream->server_errors += apply->report->error_n - errors;
    return 0;
}

/* It waits for all modules to be loaded, wherever they are asked for. */
FB_SETTER(fb_set_stream)
{
    (void)setting;
    (void)field;
    apply->stream = directive;
    return 0;
}

void fb_stream_apply(struct fb_apply *apply)
{
    struct fb_frame *frame = fb_apply_alloc(apply, sizeof(*frame));
    struct fb_frame *server;

    if (frame == NULL)
        return;
    frame->settings = fb_apply_alloc(apply, sizeof(*frame->settings));
    frame->confs = fb_apply_alloc(apply, FB_PROTOCOLS_MAX * sizeof(*frame->confs));
    frame->finished = fb_apply_alloc(apply, FB_PROTOCOLS_MAX * sizeof(*frame->finished));
    if (frame->settings == NULL || frame->confs == NULL || frame->finished == NULL)
        return;
    fb_apply_inner(apply, frame, FB_AT_STREAM, apply->stream);

    /* only now: what the stream sets behind a server holds for it too */
    STAILQ_FOREACH (server, &frame->servers, link) {
        fb_apply_defaults(apply, server, fb_stream_table);
        protocol_finish(apply, server);
    }
    fb_ports_build(apply, frame);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* `stream {}` and `server {}`. */
#include "settings/apply.h"

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

    (void)setting;
    (void)field;
    if (frame == NULL || server == NULL)
        return -1;
    frame->server = server;
    frame->settings = &server->settings;
    STAILQ_INSERT_TAIL(&stream->servers, frame, link);
    STAILQ_INSERT_TAIL(&apply->cycle->stream.servers, server, link);
    fb_apply_inner(apply, frame, FB_AT_SERVER, directive);
    return 0;
}

FB_SETTER(fb_set_stream)
{
    struct fb_frame *frame = fb_apply_alloc(apply, sizeof(*frame));
    struct fb_frame *server;

    (void)setting;
    (void)field;
    if (frame == NULL)
        return -1;
    frame->settings = fb_apply_alloc(apply, sizeof(*frame->settings));
    if (frame->settings == NULL)
        return -1;
    fb_apply_inner(apply, frame, FB_AT_STREAM, directive);

    /* only now: what the stream sets behind a server holds for it too */
    STAILQ_FOREACH (server, &frame->servers, link) {
        fb_apply_defaults(apply, server, fb_stream_table);
        fb_protocol_finish(apply, server);
    }
    fb_ports_build(apply, frame);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The directives of protocols: rows made of their descriptors. */
#include "settings/apply.h"

static const struct {
    unsigned char arguments;
    FB_SETTER((*set));
} values[] = {
    [FB_VALUE_NONE] = { 0, fb_set_nothing },
    [FB_VALUE_STRING] = { 1, fb_set_string },
    [FB_VALUE_NUMBER] = { 1, fb_set_number },
    [FB_VALUE_SIZE] = { 1, fb_set_size },
    [FB_VALUE_MSEC] = { 1, fb_set_msec },
    [FB_VALUE_FLAG] = { 1, fb_set_flag },
};

static struct fb_setting row_of(const fb_protocol *protocol, const fb_directive *directive)
{
    return (struct fb_setting) {
        .name = directive->name,
        .at = FB_AT_SERVER,
        .least = values[directive->value].arguments,
        .most = values[directive->value].arguments,
        .set = values[directive->value].set,
        .offset = directive->offset,
        .least_value = directive->least,
        .greatest_value = directive->greatest,
        .initial = directive->initial,
        .protocol = protocol,
        .flags = directive->flags,
    };
}

const struct fb_setting *fb_protocol_table(struct fb_apply *apply)
{
    const fb_protocol *const *protocols = apply->options->protocols;
    struct fb_setting *table;
    size_t n = 0;

    for (int i = 0; protocols[i] != NULL; i++)
        n += protocols[i]->directive_n;
    table = fb_apply_alloc(apply, (n + 1) * sizeof(*table));
    if (table == NULL)
        return NULL;
    n = 0;
    for (int i = 0; protocols[i] != NULL; i++)
        for (uint32_t j = 0; j < protocols[i]->directive_n; j++)
            table[n++] = row_of(protocols[i], &protocols[i]->directives[j]);
    return table;
}

static unsigned index_of(const struct fb_apply *apply, const fb_protocol *protocol)
{
    unsigned i = 0;

    while (apply->options->protocols[i] != protocol)
        i++;
    return i;
}

/* A directive of the protocol that this frame has seen, with or without the flag. */
static const struct fb_seen *seen_of(
    const struct fb_frame *frame, const fb_protocol *protocol, uint32_t flags)
{
    const struct fb_seen *seen;

    STAILQ_FOREACH (seen, &frame->seen, link)
        if (seen->setting->protocol == protocol && (seen->setting->flags & flags) == flags)
            return seen;
    return NULL;
}

void *fb_protocol_field(struct fb_apply *apply, const struct fb_setting *setting,
    const struct fb_conf_directive *directive)
{
    struct fb_server *server = apply->frame->server;
    const fb_protocol *protocol = setting->protocol;

    if (server->protocol == NULL) {
        server->protocol = protocol;
        server->protocol_index = index_of(apply, protocol);
        if (protocol->conf_state > 0) {
            server->protocol_conf = fb_apply_alloc(apply, protocol->conf_state);
            if (server->protocol_conf == NULL)
                return NULL;
        }
    }
    if (server->protocol != protocol) {
        const struct fb_seen *other = seen_of(apply->frame, server->protocol, 0);

        fb_conf_error(apply->report, &directive->name,
            "\"%s\" directive conflicts with \"%s\" in line %u: a server has one protocol",
            setting->name, other->setting->name, other->directive->name.line);
        return NULL;
    }
    if (protocol->conf_state == 0)
        return server; /* no value to set */
    if (server->protocol_conf == NULL)
        return NULL; /* its memory was reported missing */
    return (char *)server->protocol_conf + setting->offset;
}

static const char *handler_of(const fb_protocol *protocol)
{
    for (uint32_t i = 0; i < protocol->directive_n; i++)
        if (protocol->directives[i].flags & FB_DIRECTIVE_HANDLER)
            return protocol->directives[i].name;
    return protocol->name;
}

void fb_protocol_finish(struct fb_apply *apply, struct fb_frame *frame)
{
    const fb_protocol *protocol = frame->server->protocol;
    struct fb_setting rows[2] = { { .name = NULL }, { .name = NULL } };

    if (protocol == NULL)
        return;
    if (seen_of(frame, protocol, FB_DIRECTIVE_HANDLER) == NULL) {
        const struct fb_seen *seen = seen_of(frame, protocol, 0);

        if (fb_frame_is_whole(apply, frame))
            fb_conf_error(apply->report, &seen->directive->name,
                "\"%s\" directive needs \"%s\" in the same server", seen->setting->name,
                handler_of(protocol));
        return;
    }
    for (const struct fb_setting *row = apply->protocol_table; row->name != NULL; row++)
        if (row->protocol == protocol && fb_frame_seen(frame, row) == NULL) {
            rows[0] = *row;
            fb_apply_defaults(apply, frame, rows);
        }
}

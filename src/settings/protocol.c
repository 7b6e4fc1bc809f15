/* SPDX-License-Identifier: BSD-2-Clause */
/* Protocols: the rows that their descriptors make, and the configuration that each server has of its
 * own. */
#include "settings/apply.h"

#include "stream/stream.h"

#include <limits.h>
#include <string.h>

static const struct {
    unsigned char arguments, width;
    FB_SETTER((*set));
} values[] = {
    [FB_VALUE_NONE] = { 0, 0, fb_set_nothing },
    [FB_VALUE_STRING] = { 1, sizeof(const char *), fb_set_string },
    [FB_VALUE_NUMBER] = { 1, sizeof(int64_t), fb_set_number },
    [FB_VALUE_SIZE] = { 1, sizeof(int64_t), fb_set_size },
    [FB_VALUE_MSEC] = { 1, sizeof(int64_t), fb_set_msec },
    [FB_VALUE_FLAG] = { 1, sizeof(int64_t), fb_set_flag },
    [FB_VALUE_NAME] = { 1, sizeof(int64_t), fb_set_name },
    [FB_VALUE_TARGET] = { 1, sizeof(const struct fb_target *), fb_set_target },
    [FB_VALUE_CUSTOM] = { .set = fb_set_custom },
};

static unsigned char clamp(uint32_t arguments)
{
    return arguments < UCHAR_MAX ? (unsigned char)arguments : UCHAR_MAX;
}

static struct fb_setting row_of(const fb_protocol *protocol, const fb_directive *directive)
{
    bool handler = (directive->flags & FB_DIRECTIVE_HANDLER) != 0;
    struct fb_setting row = {
        .name = directive->name,
        .at = handler ? FB_AT_SERVER : FB_AT_STREAM | FB_AT_SERVER,
        .least = values[directive->value].arguments,
        .most = values[directive->value].arguments,
        .set = values[directive->value].set,
        .offset = directive->offset,
        .size = values[directive->value].width,
        .least_value = directive->least,
        .greatest_value = directive->greatest,
        .initial = directive->initial,
        .protocol = protocol,
        .declared = directive,
    };

    if (directive->value == FB_VALUE_CUSTOM) {
        row.least = clamp(directive->args_least);
        row.most = clamp(directive->args_most);
        row.size = directive->room;
    }
    return row;
}

/* The rows of all of them; NULL after a report. */
static const struct fb_setting *make_rows(
    struct fb_apply *apply, const fb_protocol *const *protocols)
{
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

int protocol_add(struct fb_apply *apply, const fb_protocol *protocol)
{
    const fb_protocol *const *before =
        protocol == NULL ? apply->options->protocols : apply->cycle->protocols;
    const struct fb_setting *rows;
    const fb_protocol **all;
    size_t n = 0;

    while (before[n] != NULL)
        n++;
    all = fb_apply_alloc(apply, (n + 2) * sizeof(fb_protocol *));
    if (all == NULL)
        return -1;
    memcpy(all, before, n * sizeof(fb_protocol *));
    all[n] = protocol;
    rows = make_rows(apply, all);
    if (rows == NULL)
        return -1;
    apply->cycle->protocols = all;
    apply->protocol_table = rows;
    apply->tables[4] = rows;
    return 0;
}

static unsigned index_of(const struct fb_apply *apply, const fb_protocol *protocol)
{
    unsigned i = 0;

    while (apply->cycle->protocols[i] != protocol)
        i++;
    return i;
}

/* A directive of the protocol that this frame has seen, with or without the flag. */
static const struct fb_seen *seen_of(
    const struct fb_frame *frame, const fb_protocol *protocol, uint32_t flags)
{
    const struct fb_seen *seen;

    STAILQ_FOREACH (seen, &frame->seen, link)
        if (seen->setting->protocol == protocol &&
            (seen->setting->declared->flags & flags) == flags)
            return seen;
    return NULL;
}

static void set_initial_values(
    struct fb_apply *apply, struct fb_frame *stream, const fb_protocol *protocol)
{
    for (const struct fb_setting *row = apply->protocol_table; row->name != NULL; row++)
        if (row->protocol == protocol && (row->at & FB_AT_STREAM) &&
            fb_frame_seen(stream, row) == NULL)
            fb_apply_initial(apply, stream, row);
}

/* What the stream has of a protocol; NULL without any, or after a report. */
static void *stream_conf(
    struct fb_apply *apply, struct fb_frame *stream, const fb_protocol *protocol)
{
    void **conf = &stream->confs[index_of(apply, protocol)];

    if (*conf == NULL && protocol->conf_state > 0)
        *conf = fb_apply_alloc(apply, protocol->conf_state);
    return *conf;
}

/* -1 after a report. */
static int take_server(struct fb_apply *apply, const struct fb_setting *setting,
    const struct fb_conf_directive *directive)
{
    struct fb_server *server = apply->frame->server;
    const fb_protocol *protocol = setting->protocol;

    if (server->protocol == NULL) {
        server->protocol = protocol;
        server->protocol_index = index_of(apply, protocol);
        if (protocol->conf_state > 0)
            server->protocol_conf = fb_apply_alloc(apply, protocol->conf_state);
    }
    if (server->protocol != protocol) {
        const struct fb_seen *other = seen_of(apply->frame, server->protocol, 0);

        fb_conf_error(apply->report, &directive->name,
            "\"%s\" directive conflicts with \"%s\" in line %u: a server has one protocol",
            setting->name, other->setting->name, other->directive->name.line);
        return -1;
    }
    return 0;
}

void *protocol_field(struct fb_apply *apply, const struct fb_setting *setting,
    const struct fb_conf_directive *directive)
{
    const fb_protocol *protocol = setting->protocol;
    char *conf;

    if (apply->frame->server != NULL && take_server(apply, setting, directive) == -1)
        return NULL;
    if (protocol->conf_state == 0)
        return apply->frame; /* no value to set */
    conf = apply->frame->server != NULL ? apply->frame->server->protocol_conf
                                        : stream_conf(apply, apply->frame, protocol);
    return conf == NULL ? NULL : conf + setting->offset; /* its memory was reported missing */
}

static const char *handler_of(const fb_protocol *protocol)
{
    for (uint32_t i = 0; i < protocol->directive_n; i++)
        if (protocol->directives[i].flags & FB_DIRECTIVE_HANDLER)
            return protocol->directives[i].name;
    return protocol->name;
}

static bool has_handler(struct fb_apply *apply, const struct fb_frame *frame)
{
    const fb_protocol *protocol = frame->server->protocol;
    const struct fb_seen *seen = seen_of(frame, protocol, 0);

    if (seen_of(frame, protocol, FB_DIRECTIVE_HANDLER) != NULL)
        return true;
    if (fb_frame_is_whole(apply, frame))
        fb_conf_error(apply->report, &seen->directive->name,
            "\"%s\" directive needs \"%s\" in the same server", seen->setting->name,
            handler_of(protocol));
    return false;
}

/* What the server has not set is the stream's, if that has, or initial. */
static void inherit(struct fb_apply *apply, struct fb_frame *frame, const char *parent)
{
    const struct fb_server *server = frame->server;

    for (const struct fb_setting *row = apply->protocol_table; row->name != NULL; row++) {
        if (row->protocol != server->protocol || fb_frame_seen(frame, row) != NULL)
            continue;
        if (fb_frame_seen(frame->outer, row) == NULL)
            fb_apply_initial(apply, frame, row);
        else if (server->protocol_conf != NULL && parent != NULL)
            memcpy((char *)server->protocol_conf + row->offset, parent + row->offset, row->size);
    }
}

static void conclude(struct fb_apply *apply, struct fb_frame *frame, const void *parent)
{
    const fb_protocol *protocol = frame->server->protocol;
    struct fb_conf conf = { .apply = apply, .frame = frame, .protocol = protocol };
    unsigned errors = apply->report->error_n;
    int status;

    fb_progress_enter(apply->options->progress, &frame->directive->name,
        "when its configuration was done", "protocol \"%s\"", protocol->name);
    status = protocol->conf_done(&conf, frame->server->protocol_conf, parent);
    fb_progress_leave(apply->options->progress);
    if (status != 0 && apply->report->error_n == errors)
        fb_conf_error(apply->report, &frame->directive->name,
            "protocol \"%s\" refuses this server and does not say why", protocol->name);
}

void protocol_finish(struct fb_apply *apply, struct fb_frame *frame)
{
    const fb_protocol *protocol = frame->server->protocol;
    unsigned index = frame->server->protocol_index, errors;
    const void *parent;

    if (protocol == NULL || !has_handler(apply, frame))
        return;
    errors = apply->report->error_n;
    if (!frame->outer->finished[index]) {
        frame->outer->finished[index] = true;
        stream_conf(apply, frame->outer, protocol);
        set_initial_values(apply, frame->outer, protocol);
    }
    parent = frame->outer->confs[index];
    inherit(apply, frame, parent);
    if (protocol->metric_n > 0)
        frame->server->metrics = settings_protocol_metrics(apply, protocol);
    if (protocol->conf_done != NULL && fb_frame_is_whole(apply, frame) && !frame->outer->refused &&
        apply->report->error_n == errors)
        conclude(apply, frame, parent);
}

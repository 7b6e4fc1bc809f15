/* SPDX-License-Identifier: BSD-2-Clause */
/* Protocols in the configuration: rows made of what their descriptors declare, and the values that
 * each server has of its own. A server has one protocol, and what it does not set is the stream's.
 * */
#pragma once

#include "settings/setting.h"

struct fb_frame;
struct fb_zone;

/* The SDK's fb_conf: where a protocol's callback is in the configuration. */
struct fb_conf {
    struct fb_apply *apply;
    struct fb_frame *scope; /* the server's, or the stream's */
    const fb_protocol *protocol;
    const struct fb_conf_directive *directive; /* being set; NULL in conf_done */
};

/* Adds a protocol, or begins the list with the built-in ones (NULL), and makes the directives of
 * all protocols rows; -1 after a report. */
int protocol_add(struct fb_apply *apply, const fb_protocol *protocol);
/* Returns the field of a protocol's directive in the current server or stream; NULL after a report.
 * */
void *protocol_field(struct fb_apply *apply, const struct fb_setting *setting,
    const struct fb_conf_directive *directive);
/* Checks the server's protocol, sets what was not written, and calls conf_done. */
void protocol_finish(struct fb_apply *apply, struct fb_frame *scope);
/* Declares the zone of a protocol's metrics (conf_calls.c); NULL after a report. */
struct fb_zone *settings_protocol_metrics(struct fb_apply *apply, const fb_protocol *protocol);

/* Setters of values that only protocols have; `setting->declared` says what was declared
 * (protocol_values.c). */
FB_SETTER(fb_set_name);
FB_SETTER(fb_set_target);
FB_SETTER(fb_set_custom);

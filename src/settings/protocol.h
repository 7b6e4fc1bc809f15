/* SPDX-License-Identifier: BSD-2-Clause */
/* Protocols in the configuration: rows made of the declarations in descriptors, and the values of
 * each server, which has one protocol and inherits values from the stream. */
#pragma once

#include "settings/setting.h"

struct scope;
struct zone;

/* The SDK's fb_conf: where a protocol's callback is in the configuration. */
struct fb_conf {
    struct apply *apply;
    struct scope *scope; /* the server's, or the stream's */
    const fb_protocol *protocol;
    const struct conf_directive *directive; /* being set; NULL in conf_done */
};

/* Adds a protocol, or begins with the built-in protocols (NULL), and makes rows of directives. */
int protocol_add(struct apply *apply, const fb_protocol *protocol);
/* Checks the server's protocol, sets what was not written, and calls conf_done. */
void protocol_finish(struct apply *apply, struct scope *scope);
/* Defines the variables of all protocols, before anything uses one. */
void protocol_define_variables(struct apply *apply);
/* Returns the path of a protocol's module, or the name of a protocol that has none. */
const char *protocol_module(const struct apply *apply, const fb_protocol *protocol);
/* Declares the zone of a protocol's metrics (calls.c); NULL after a report. */
struct zone *settings_protocol_metrics(struct apply *apply, const fb_protocol *protocol);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Scopes: blocks of the configuration while their directives are applied. A scope remembers which
 * directives were written in it, so that repetitions are found and only what is missing is
 * inherited or set to its default. */
#pragma once

#include "conf/conf.h"
#include "settings/setting.h"

struct fb_seen {
    STAILQ_ENTRY(fb_seen) link;
    const struct fb_setting *setting;
    const struct fb_conf_directive *directive;
};

#define SCOPE_KIND KIND('S', 'C', 'O', 'P')

struct fb_frame {
    unsigned kind;                             /* SCOPE_KIND */
    STAILQ_ENTRY(fb_frame) link;               /* in the stream's list of servers */
    unsigned at;                               /* context: one of enum fb_at */
    struct fb_frame *outer;                    /* enclosing scope; NULL: this is the main context */
    const struct fb_conf_directive *directive; /* opened the block; NULL: the main context */
    bool refused;                              /* a mistake was found, servers' not counted */
    unsigned server_errors;                    /* mistakes in its servers */
    STAILQ_HEAD(, fb_seen) seen;               /* directives that were written in it */
    struct fb_server_settings *settings;       /* set by a stream or server block, else NULL */
    struct fb_server *server;                  /* made by a server block, else NULL */
    STAILQ_HEAD(, fb_frame) servers;           /* stream block: its servers */
    void **confs;                              /* stream block: values of each protocol, or NULL */
    bool *finished;                            /* stream block: the protocol's defaults are set */
    STAILQ_HEAD(, fb_listen) listens;          /* server block: its addresses */
    bool listens_unknown; /* server block: some sockets are known only to the daemon */
};

/* Makes an empty scope of the context `at` within `outer`. */
void scope_init(struct fb_frame *scope, unsigned at, struct fb_frame *outer);
/* Returns the directive that set this in the scope, or NULL. */
const struct fb_conf_directive *fb_frame_seen(
    const struct fb_frame *scope, const struct fb_setting *setting);
/* Tells whether a row of the table that sets the same field was written in the scope: two
 * directives can be names of one value. */
bool scope_sets_field(
    const struct fb_frame *scope, const struct fb_setting *table, const struct fb_setting *setting);
/* Tells whether everything in the block was read and accepted. If not, a directive that seems to be
 * missing may stand in the part that was not, and is not reported. */
bool fb_frame_is_whole(const struct fb_apply *apply, const struct fb_frame *scope);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Scopes: blocks of the configuration while directives are applied. A scope remembers its written
 * directives, so that repetitions are found and only missing directives are inherited or set to
 * defaults. */
#pragma once

#include "conf/conf.h"
#include "settings/setting.h"

struct scope_entry {
    STAILQ_ENTRY(scope_entry) link;
    const struct setting *setting;
    const struct conf_directive *directive;
};

#define SCOPE_KIND KIND('S', 'C', 'O', 'P')

struct scope {
    unsigned kind;                          /* SCOPE_KIND */
    STAILQ_ENTRY(scope) link;               /* in the stream's list of servers */
    unsigned at;                            /* context: one of enum context */
    struct scope *outer;                    /* enclosing scope; NULL: this is the main context */
    const struct conf_directive *directive; /* opened the block; NULL: the main context */
    bool refused;                           /* a mistake was found, servers' not counted */
    unsigned server_errors;                 /* mistakes in its servers */
    STAILQ_HEAD(, scope_entry) seen;        /* directives that were written in it */
    void *own;                              /* set by a block of CONTEXT_OWN, else NULL */
    struct server_settings *settings;       /* set by a stream or server block, else NULL */
    void **features;                        /* the features' structs of such a block, else NULL */
    struct server *server;                  /* made by a server block, else NULL */
    STAILQ_HEAD(, scope) servers;           /* stream block: its servers */
    void **confs;                           /* stream block: values of each protocol, or NULL */
    bool *finished;                         /* stream block: the protocol's defaults are set */
    STAILQ_HEAD(, listen_address) listens;  /* server block: its addresses */
    STAILQ_HEAD(, server_name) names;       /* server block: its names */
    bool listens_unknown; /* server block: some sockets are known only to the daemon */
};

/* Makes an empty scope of the context `at` within `outer`. */
void scope_init(struct scope *scope, unsigned at, struct scope *outer);
/* Returns the directive in the scope for the setting, or NULL. */
const struct conf_directive *scope_find(const struct scope *scope, const struct setting *setting);
/* Whether a row of the table for the same field was written in the scope: two directives can be
 * names of one value. */
bool scope_sets_field(
    const struct scope *scope, const struct setting *table, const struct setting *setting);
/* Whether everything in the block was read and accepted. If not, a directive that seems to be
 * missing may stand in the part that was not, and is not reported. */
bool scope_is_whole(const struct apply *apply, const struct scope *scope);

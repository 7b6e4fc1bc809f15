/* SPDX-License-Identifier: BSD-2-Clause */
/* The walk through the parsed configuration: finds each directive's row, checks the directive
 * against the row, and runs the setter. Knows rows, and no directive by name. Changes the cycle
 * alone. Functions of settings/ return NULL or -1 after a report. */
#pragma once

#include "conf/report.h"
#include "settings/apply_alloc.h"
#include "settings/cycle.h"
#include "settings/paths.h"
#include "settings/setting.h"

#include <bsd/sys/tree.h>

/* A directive that was written in a scope. */
struct scope_entry {
    STAILQ_ENTRY(scope_entry) link;
    const struct setting *setting;
    const struct conf_directive *directive;
};

#define SCOPE_KIND KIND('S', 'C', 'O', 'P')

/* A block while its directives are applied, with the written ones, to find missing directives. */
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

#define APPLY_KIND KIND('A', 'P', 'L', 'Y')

/* Places in the list of tables. */
enum {
    TABLE_CORE,
    TABLE_EVENTS,
    TABLE_MECHANISMS,
    TABLE_STREAM,
    TABLE_UPSTREAM,
    TABLE_PROTOCOLS,
    TABLES
};

struct apply {
    unsigned kind; /* APPLY_KIND */
    struct cycle *cycle;
    struct conf_report *report;
    const struct cycle_options *options;
    struct scope *scope;                      /* innermost block that is being applied */
    const struct setting *setting;            /* row of the directive that is being set */
    const struct setting *tables[TABLES + 1]; /* ends with NULL */
    const struct conf_word *use;              /* word that named the mechanism, or NULL */
    const struct conf_directive *affinity;    /* worker_cpu_affinity, or NULL */
    const struct conf_word *control_group;    /* of the control socket, or NULL; of the next */
    const struct conf_word *control_read_group;
    const struct conf_directive *stream; /* stored until the main context was applied */
    struct scope *stream_scope;          /* the block of stream {}, once read; or NULL */
    STAILQ_HEAD(, path_entry) paths;     /* paths of accepted directives */
    bool cut;                            /* a text ended early, at a lexical error */
    bool lacks_module; /* a module was refused: an unknown directive may be the module's */
};

/* Returns the directive written in the scope for the row, or NULL. */
const struct conf_directive *apply_find(const struct scope *scope, const struct setting *setting);
/* Whether the whole block was read and accepted: only then missing directives are reported. */
bool apply_is_whole(const struct apply *apply, const struct scope *scope);
/* Applies all directives of the block in the current scope. */
void apply_block(struct apply *apply, const struct conf_block *block);
/* Applies the directive's block in a scope of its own; NULL: only makes the scope. */
void apply_scope(
    struct apply *apply, struct scope *scope, unsigned at, const struct conf_directive *directive);
/* Sets unwritten directives of the scope: from the outer block, or to the default. */
void apply_defaults(struct apply *apply, struct scope *scope, const struct setting *table);
/* Sets a field in the scope to the row's default. */
void apply_initial(struct apply *apply, struct scope *scope, const struct setting *setting);
/* The setter of `include`: applies the content of the files. */
int apply_include(struct apply *apply, const struct conf_directive *directive, void *field);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The walk through the parsed configuration: finds each directive's row, checks what the row says,
 * and runs its setter. It knows rows and no directive by name. All mistakes go to the report, and
 * nothing outside the cycle is changed. Private to settings/. */
#pragma once

#include "conf/report.h"
#include "settings/apply_alloc.h"
#include "settings/cycle.h"
#include "settings/paths.h"
#include "settings/scope.h"
#include "settings/setting.h"

#include <bsd/sys/tree.h>

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
    const struct setting *tables[TABLES + 1]; /* ends with NULL */
    const struct conf_word *use;              /* word that named the mechanism, or NULL */
    const struct conf_directive *affinity;    /* worker_cpu_affinity, or NULL */
    const struct conf_directive *stream;      /* stored until the main context was applied */
    struct scope *stream_scope;               /* its block, once that was read; or NULL */
    STAILQ_HEAD(, path_entry) paths;          /* paths of accepted directives */
    bool cut;                                 /* a text ended early, at a lexical error */
    bool lacks_module; /* a module was refused: an unknown directive may be the module's */
};

/* Applies all directives of the block in the current scope. */
void apply_block(struct apply *apply, const struct conf_block *block);
/* Applies the block of `directive` in a scope of its own; `directive` NULL: only makes the
 * scope. */
void apply_scope(
    struct apply *apply, struct scope *scope, unsigned at, const struct conf_directive *directive);
/* Sets what was not written in the scope: from the outer block, or to its default. */
void apply_defaults(struct apply *apply, struct scope *scope, const struct setting *table);
/* Sets one field in the scope to its default. */
void apply_initial(struct apply *apply, struct scope *scope, const struct setting *setting);
/* Sets everything in the cycle that the rows of a context say, as if nothing was written; rows of
 * servers set `settings` and `features`. Takes no memory. */
void apply_table_defaults(struct cycle *cycle, struct server_settings *settings, void **features,
    unsigned at, const struct setting *table);
/* The setter of `include`: applies what the files have. */
int apply_include(struct apply *apply, const struct setting *setting,
    const struct conf_directive *directive, void *field);

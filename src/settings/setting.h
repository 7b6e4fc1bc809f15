/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of directives. A row has all facts of a directive: contexts, arguments, setter,
 * default; tests/lint compares the rows with the manual. Defaults that depend on the build, the
 * command line or other directives (control, pid, user, env, error_log) are worked out at the end
 * of the file (core.c, log_targets.c): `unset` is the text of the manual. */
#pragma once

#include "conf/conf.h"

#include <forkbeard/forkbeard.h>

/* Contexts of directives. Two rows of a name may stand in different contexts. */
enum context {
    CONTEXT_MAIN = 1,
    CONTEXT_EVENTS = 2,
    CONTEXT_STREAM = 4,
    CONTEXT_SERVER = 8,
    CONTEXT_UPSTREAM = 16,
};
/* Any context; and blocks whose directives set a struct of the block's own, scope->own. */
#define CONTEXT_ANY                                                                                \
    (CONTEXT_MAIN | CONTEXT_EVENTS | CONTEXT_STREAM | CONTEXT_SERVER | CONTEXT_UPSTREAM)
#define CONTEXT_OWN CONTEXT_UPSTREAM
/* stream {}, for all servers, and a server. */
#define CONTEXT_SERVERS (CONTEXT_STREAM | CONTEXT_SERVER)

struct apply;

struct setting {
    const char *name;
    unsigned at;               /* enum context; more than one: inherited from the outer block */
    unsigned char least, most; /* number of arguments */
    bool repeats;              /* may stand more than once in a block */
    bool block;                /* opens a block instead of ending with ";" */
    bool parts;                /* consists of parts: an unwritten part has a default */
    bool finds_master;         /* applied even where only the way to the master is wanted (-s) */
    /* Sets the value: 0, or -1 after a report. `field` is the context's struct + offset. */
    int (*set)(struct apply *apply, const struct conf_directive *directive, void *field);
    size_t offset, size; /* place of the field; a size is needed only to inherit it */
    int64_t least_value, greatest_value;
    const char *const *names; /* choices of set_name(), up to NULL */
    const char *initial;      /* default: set as if it had been written; NULL: see `unset` */
    /* without `initial`: the default in the manual's words, such as "none"; no setter runs */
    const char *unset;
    int64_t unset_value;          /* a number that the field holds then; 0 in most rows */
    unsigned feature;             /* 1 + the index of the feature whose struct is set; 0: none */
    const fb_protocol *protocol;  /* owner of the directive, or NULL: the daemon */
    const fb_directive *declared; /* the protocol's declaration, or NULL */
    const struct setting *tls;    /* of FB_VALUE_TLS: the feature's row; NULL: any other row */
};

/* Place and size of a field of a struct, for a row. */
#define SETTING_FIELD(type, member)                                                                \
    .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

/* Tables end with a row without a name. */
extern const struct setting core_table[];
extern const struct setting events_table[];
extern const struct setting stream_rows[]; /* rows of stream {} that are no feature's */
extern const struct setting upstream_table[];

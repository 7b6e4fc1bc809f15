/* SPDX-License-Identifier: BSD-2-Clause */
/* `upstream {}`: directives of the block, and groups by name, also named before the block. */
#pragma once

#include "backends/group.h"
#include "features/features.h"
#include "settings/apply.h"
#include "upstream/upstream.h"

#include <bsd/sys/tree.h>

struct scope;

/* The feature's struct of the configuration. */
struct upstream_conf {
    struct named_upstreams named;
    RB_HEAD(upstream_names, upstream_entry) all; /* find.c */
    STAILQ_HEAD(, upstream_use) uses;            /* directives that lead to one */
    STAILQ_HEAD(, upstream_zone_use) zones;      /* zones that groups have named */
};

static inline struct upstream_conf *upstream_conf_of(const struct apply *apply)
{
    return feature_conf(apply, FEATURE_UPSTREAM);
}

/* A block during reading, filled in by directives. */
struct upstream_block {
    struct upstream *upstream;
    const struct conf_word *balance;             /* directive of the balancer; NULL: none */
    const struct conf_word *backup, *slow_start; /* the first parameters of the names, or NULL */
    bool has_primary;                            /* a server is no backup */
    struct upstream_drop drop;
    const struct names_setting *resolver;
    int64_t resolver_timeout;
};

/* A group by its name, or by the address of a directive. */
struct upstream_entry {
    RB_ENTRY(upstream_entry) node;
    struct upstream *upstream;
};

/* server.c: `server` of the block; a server with all defaults (NULL after a report); and an address
 * or a name of a server from text: NULL, or the mistake. */
int upstream_server_set(struct apply *apply, const struct conf_directive *directive, void *field);
struct upstream_server *upstream_server_make(struct apply *apply);
const char *upstream_server_parse(
    struct apply *apply, const char *text, struct upstream_server *server);
/* Adds the server, and the needs of workers for the server, to the group. */
void upstream_server_add(
    struct apply *apply, struct upstream *upstream, struct upstream_server *server);

/* balance.c: the balancers; and the check whether a balancer supports the servers' parameters. */
int upstream_balance_set_hash(
    struct apply *apply, const struct conf_directive *directive, void *field);
int upstream_balance_set_least_conn(
    struct apply *apply, const struct conf_directive *directive, void *field);
int upstream_balance_set_least_time(
    struct apply *apply, const struct conf_directive *directive, void *field);
int upstream_balance_set_random(
    struct apply *apply, const struct conf_directive *directive, void *field);
void upstream_balance_check(struct apply *apply, const struct upstream_block *block);

/* find.c: Adds a group; -1: the name is taken, or no memory, after a report. */
int upstream_add(struct apply *apply, struct upstream *upstream);
/* Returns the named group, of `upstream {}` alone and not of a single address, or NULL. */
struct upstream *upstream_find(struct apply *apply, const char *name);
/* Returns the equal group, or NULL. */
struct upstream *upstream_find_like(struct apply *apply, struct upstream *like);
/* Lets sessions find the groups by name, once all were added. */
void upstream_number_names(struct apply *apply);
/* Returns the nearest name of a group, or NULL. */
const char *upstream_nearest(struct apply *apply, const char *name);

/* A directive that leads to a group, or to a text with variables. */
struct upstream_use {
    STAILQ_ENTRY(upstream_use) link;
    struct fb_upstream *where;
    const char *text;
    const struct conf_word *word;
    const struct server_settings *settings; /* of its block */
    const struct server *server;            /* block that it stands in, or NULL */
    bool circles;                           /* pass/: leads to own servers alone, as these do */
};

/* uses.c: Reads the group of a protocol's clients, as fb_conf_upstream(); NULL after a report. */
const fb_upstream *upstream_of_conf(fb_conf *conf, const char *directive, const char *text);
/* uses.c: Finds the groups that directives lead to, once all of stream {} was read. */
void upstream_finish_uses(struct apply *apply, struct scope *stream);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The resolvers of a worker, and the resolutions of its protocols (fb_resolve()). Each resolution
 * is delivered once, from the loop, unless cancelled. Invariant: a resolution waits for a part, or
 * is due. */
#pragma once

#include "base/check.h"
#include "names/resolver.h"

struct fb_worker;

#define NAMES_KIND KIND('N', 'a', 'm', 'e')
#define RESOLUTION_KIND KIND('R', 's', 'l', 'n')
/* Sockets of all resolvers of a worker. */
#define NAMES_SOCKETS 512

typedef void names_resolved(struct fb_worker *handle, const fb_names *names, void *arg);
/* Resolutions of one owner. */
LIST_HEAD(names_owned, fb_resolution);
struct fb_resolution {
    unsigned kind;
    struct resolver *resolver;
    TAILQ_ENTRY(fb_resolution) link; /* among all, or among the due resolutions */
    LIST_ENTRY(fb_resolution) owned; /* in the owner's list */
    bool has_owner, is_due;
    struct timer timer;
    uint64_t timeout;
    uint32_t type; /* an fb_name_type */
    in_port_t port;
    unsigned part_n, waits; /* parts in use, and parts without an outcome */
    struct resolver_part parts[2];
    struct fb_worker *handle;
    names_resolved *resolved;
    void *arg;
    char name[];
};

TAILQ_HEAD(names_list, fb_resolution);
struct names {
    unsigned kind;
    struct resolver_host host; /* the source stands for due resolutions, too */
    struct source_ops ops;     /* the source's, which lead to the struct */
    struct resolver *first;
    struct names_list all, due;
    unsigned n;
    bool ending;
    /* calls a protocol, or without a handle the daemon; the resolution is gone when it returns */
    void (*deliver)(struct names *names, struct fb_worker *handle, names_resolved *resolved,
        const fb_names *what, void *arg);
    void (*delivered)(struct names *names); /* after some deliveries */
};

/* Makes the resolvers of all settings of the users (enum names_users); NULL after an emerg line. */
struct names *names_create(struct loop *loop, const struct memory *memory,
    const struct names_setting *settings, unsigned users);
/* Ends all resolutions but those of connections: the worker ends. Nothing can be asked then. */
void names_end(struct names *names);
/* Frees everything, without a delivery. */
void names_destroy(struct names **names);
/* Slots of the loop for the resolvers; 0: no resolver to make. */
unsigned names_slots(const struct names_setting *settings, unsigned users);
/* A question of a protocol, or (without a handle) of the daemon itself. */
struct names_query {
    struct fb_worker *handle;
    const char *name;              /* NULL with `address` */
    uint32_t type;                 /* an fb_name_type */
    const struct address *address; /* FB_NAME_PTR's, or NULL */
    uint64_t timeout;              /* ms; 0: for ever */
    in_port_t port;
    bool quiet;                /* a failure is logged by the asker */
    struct names_owned *owned; /* the owner's list, or NULL */
    names_resolved *resolved;
    void *arg;
};

/* Begins a resolution; NULL with errno, as fb_resolve(). */
struct fb_resolution *names_resolve(
    struct names *names, const struct names_setting *setting, const struct names_query *query);
void names_cancel(struct fb_resolution *resolution);
/* Cancels all of an owner. */
void names_cancel_owned(struct names_owned *owned);
/* resolution.c: the end of a part, a due delivery, and the end with the worker. */
void resolution_part_ended(struct resolver_part *part);
void resolution_deliver(struct names *names, struct fb_resolution *resolution);
void resolution_give_up(struct fb_resolution *resolution);
/* Asserts what holds between two calls. */
void names_check(const struct names *names);

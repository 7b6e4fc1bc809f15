/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of a protocol that a thread runs, in the checked mode: a stack of scopes, with the
 * innermost last; and the list of this process's checked workers. Both are the process's own state,
 * because a call on a wrong handle has no other way to them. */
#pragma once

#include <bsd/sys/queue.h>
#include <stdint.h>

struct checked;
struct checked_block;
struct fb_conf;
struct fb_conn;
struct fb_master;
struct fb_protocol;

SLIST_HEAD(checked_list, checked);

/* Kinds of places of a protocol's code. */
enum checked_place {
    CHECKED_CALLBACK, /* a worker's: calls are allowed */
    CHECKED_CONF,     /* conf_done or `set` */
    CHECKED_MASTER,   /* conf_accepted or conf_gone */
    CHECKED_JOB,      /* the work of fb_run(), on a thread */
};

struct checked_scope {
    struct checked_scope *outer; /* NULL: none */
    enum checked_place place;
    const char *callback;               /* its name */
    const struct fb_protocol *protocol; /* the daemon's view of it */
    struct checked *checked;            /* CHECKED_CALLBACK and CHECKED_JOB: the worker */
    const struct fb_conn *conn;         /* the connection whose callback runs, or NULL */
    const struct fb_conn *closes;       /* the connection whose `closed` runs, or NULL */
    struct fb_conf *conf;               /* CHECKED_CONF */
    struct fb_master *master;           /* CHECKED_MASTER */
    struct checked_block *lent;         /* a copy of bytes, lent to the callback, or NULL */
    const uint8_t *real;                /* the bytes that were copied */
    unsigned mistakes;                  /* reported within it */
};

/* Enters a scope, the caller's until checked_scope_leave(). */
void checked_scope_enter(struct checked_scope *scope);
void checked_scope_leave(struct checked_scope *scope);
/* Returns this thread's innermost scope, or NULL. */
struct checked_scope *checked_scope_now(void);
/* Returns the list of this process's workers. */
struct checked_list *checked_scope_workers(void);

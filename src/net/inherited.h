/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets that this process was given at its start, by the service manager or by the master
 * process that it replaces. They lie in listeners, one an address, from which those of the
 * configuration take them over as they do from the configuration before. */
#pragma once

#include "net/listener.h"

enum fb_inherited_from {
    FB_FROM_MANAGER, /* the service manager has opened it (socket activation) */
    FB_FROM_STORE,   /* we had; the service manager has kept it for us (descriptor store) */
    FB_FROM_MASTER,  /* we had; the master process that has started us listens on it too */
};

/* The first descriptor that a service manager passes. */
#define FB_PASSED_FIRST 3

struct fb_inherited_socket {
    STAILQ_ENTRY(fb_inherited_socket) link;
    enum fb_inherited_from from;
    int fd;           /* also one of the lender's, until a listener has taken it */
    int number;       /* the service manager's, from FB_PASSED_FIRST on; 0: it is not its */
    const char *name; /* as the service manager calls it, or "" */
    bool ipv6only;
    struct fb_listener *lender;
};

struct fb_inherited {
    struct fb_arena *arena;
    STAILQ_HEAD(, fb_inherited_socket) sockets;
    struct fb_listeners lenders;
    bool settled;
};

/* NULL without memory. */
struct fb_inherited *fb_inherited_create(void);
/* Frees it; what it has open stays so. */
void fb_inherited_destroy(struct fb_inherited **inherited);

/* Adds a descriptor, which becomes close-on-exec and non-blocking. Of the socket only what is to be
 * remembered is read: from, fd, number, name. Returns NULL, or what is wrong with it, as a constant
 * string, perhaps with errno (else 0), and then it is left as it was. */
const char *fb_inherited_add(
    struct fb_inherited *inherited, const struct fb_inherited_socket *passed);

/* What the service manager calls so, by name or by number: how many addresses these sockets have, of
 * which up to `max` are stored; *ipv6only is that of the first socket. */
unsigned fb_inherited_find(const struct fb_inherited *inherited, const char *name,
    struct fb_address *out, unsigned max, bool *ipv6only);
/* What the service manager has passed: `3 ("web") 0.0.0.0:80, ...`, cut to size, or "none". */
void fb_inherited_show(const struct fb_inherited *inherited, char *text, size_t size);

/* The listener that can lend its sockets to this one, or NULL; `inherited` may be NULL. */
struct fb_listener *fb_inherited_lender(
    const struct fb_inherited *inherited, const struct fb_listener *listener);
/* These listeners serve; the first time, what was ours is theirs alone from now on, and a line tells
 * of each socket that none of them has taken. One of the service manager's stays open, because we
 * could not get it again. One from its store is accepted from until nobody waits, and closed, one of
 * another master process closed only. `inherited` may be NULL. */
void fb_inherited_settle(
    struct fb_inherited *inherited, const struct fb_listeners *serving, struct fb_log *log);
/* In a child: closes what these listeners do not have, and they keep nothing open for us any more. */
void fb_inherited_forget(struct fb_inherited *inherited, const struct fb_listeners *own);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Adopted sockets: listening sockets that this process was given at its start, by the service
 * manager or by the master process that has started it. They are kept in listeners, one an
 * address, which are their previous holders: the listeners of a configuration take them over
 * from these as they do from those of the configuration before. No socket is closed before the
 * first configuration serves. */
#pragma once

#include "net/listener.h"

enum fb_inherited_from {
    FB_FROM_MANAGER, /* the service manager has opened it (socket activation) */
    FB_FROM_STORE,   /* an earlier daemon has; the service manager has kept it (descriptor store) */
    FB_FROM_MASTER,  /* the master process that has started us has, and listens on it too */
};

/* The first descriptor that a service manager passes. */
#define FB_PASSED_FIRST 3

struct fb_inherited_socket {
    STAILQ_ENTRY(fb_inherited_socket) link;
    enum fb_inherited_from from;
    int fd;           /* shared with the lender, until a listener has taken it over */
    int number;       /* the service manager's number, from FB_PASSED_FIRST on; 0: none */
    const char *name; /* the service manager's name for it, or "" */
    bool ipv6only;
    struct fb_listener *lender; /* the previous holder */
};

struct fb_inherited {
    struct fb_arena *arena;
    STAILQ_HEAD(, fb_inherited_socket) sockets;
    struct fb_listeners lenders;
    bool settled; /* a configuration has served: only the service manager's sockets are left */
};

/* Returns NULL without memory. */
struct fb_inherited *fb_inherited_create(void);
/* Frees the memory; sockets stay open. */
void fb_inherited_destroy(struct fb_inherited **inherited);

/* Adds a descriptor, which becomes close-on-exec and non-blocking. Of `passed` these members are
 * read: from, fd, number, name. Returns NULL; or what is wrong with the descriptor, as a
 * constant string, with errno or 0, and then the descriptor is left as it was. */
const char *fb_inherited_add(
    struct fb_inherited *inherited, const struct fb_inherited_socket *passed);

/* Finds the service manager's sockets of this name or number. Returns how many addresses they
 * have, and stores up to `max` of them; *ipv6only is that of the first socket. */
unsigned fb_inherited_find(const struct fb_inherited *inherited, const char *name,
    struct fb_address *out, unsigned max, bool *ipv6only);
/* Describes the service manager's sockets: `3 ("web") 0.0.0.0:80, ...`, cut to size, or "none". */
void fb_inherited_show(const struct fb_inherited *inherited, char *text, size_t size);

/* Returns the previous holder of this listener's address, or NULL; `inherited` may be NULL. */
struct fb_listener *fb_inherited_lender(
    const struct fb_inherited *inherited, const struct fb_listener *listener);
/* Ends the adoption, at the first call: `serving` are the listeners that serve, and have taken
 * over what they want. Logs each socket that none of them has taken. The service manager's stay
 * open, because we could not get them again. Sockets of its store are closed when every client
 * in their queue has been closed; sockets of the other master process are closed at once,
 * because that process serves their clients. `inherited` may be NULL. */
void fb_inherited_settle(
    struct fb_inherited *inherited, const struct fb_listeners *serving, struct fb_log *log);
/* In a child: closes the sockets that are not of these listeners, which are their only holder
 * then. */
void fb_inherited_forget(struct fb_inherited *inherited, const struct fb_listeners *own);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Adopted sockets: listening sockets that this process was given at its start, by the service
 * manager or by the master process that has started it. Each address has a listener, the holder of
 * its sockets, until a configuration serves: the listeners of the configuration take sockets over
 * from holders in the same way as from the listeners of an earlier configuration. No socket is
 * closed before the first configuration serves. */
#pragma once

#include "net/listener.h"

enum adopted_from {
    ADOPTED_FROM_MANAGER, /* the service manager has opened it (socket activation) */
    /* an earlier daemon has opened it, and the service manager has stored it */
    ADOPTED_FROM_STORE,
    ADOPTED_FROM_MASTER, /* the master process that has started us has, and listens on it too */
};

/* The first descriptor that a service manager passes. */
#define ADOPTED_PASSED_FIRST 3

struct adopted_socket {
    STAILQ_ENTRY(adopted_socket) link;
    enum adopted_from from;
    int fd;           /* shared with the holder, until a listener has taken it over */
    int number;       /* the service manager's number, from ADOPTED_PASSED_FIRST on; 0: none */
    const char *name; /* the service manager's name for it, or "" */
    bool ipv6only;
    struct listener *holder; /* listener that has the socket until a configuration serves */
};

struct adopted {
    struct arena *arena;
    STAILQ_HEAD(, adopted_socket) sockets;
    struct listeners holders;
    bool finished; /* a configuration has served: only the service manager's sockets are left */
};

/* Returns NULL without memory. */
struct adopted *adopted_create(void);
/* Frees the memory; sockets stay open. */
void adopted_destroy(struct adopted **adopted);

/* Adds a descriptor, which becomes close-on-exec and non-blocking. Of `passed` these members are
 * read: from, fd, number, name. Returns NULL; or what is wrong with the descriptor, as a
 * constant string, with errno or 0, and then the descriptor is left as it was. */
const char *adopted_add(struct adopted *adopted, const struct adopted_socket *passed);

/* Finds the service manager's sockets of this name or number. Returns how many addresses they
 * have, and stores up to `max` of them; *ipv6only is that of the first socket. */
unsigned adopted_find(const struct adopted *adopted, const char *name, struct address *out,
    unsigned max, bool *ipv6only);
/* Describes the service manager's sockets: `3 ("web") 0.0.0.0:80, ...`, cut to size, or "none". */
void adopted_describe(const struct adopted *adopted, char *text, size_t size);

/* Returns the holder of the sockets of this listener's address, or NULL; `adopted` may be NULL. */
struct listener *adopted_holder(const struct adopted *adopted, const struct listener *listener);
/* Ends the adoption, at the first call: `serving` are the listeners that serve, and have taken over
 * what they want. Logs each socket that none of them has taken. The service manager's stay open,
 * because the daemon could not get them again. Sockets of its store are closed when every client in
 * their queue has been closed; sockets of the other master process are closed at once, because that
 * process serves their clients. `adopted` may be NULL. */
void adopted_finish(struct adopted *adopted, const struct listeners *serving, struct log *log);
/* In a child: closes the sockets that are not of these listeners, which are their only holder
 * then. */
void adopted_close_others(struct adopted *adopted, const struct listeners *own);

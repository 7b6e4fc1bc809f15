/* SPDX-License-Identifier: BSD-2-Clause */
/* Adopted sockets: listening sockets from the service manager or the parent master process. An
 * address has a listener, the holder of its sockets, until a configuration serves, which takes over
 * the sockets as from an earlier configuration. No socket is closed before. */
#pragma once

#include "net/listener.h"

enum adopted_from {
    ADOPTED_FROM_MANAGER, /* opened by the service manager (socket activation) */
    /* opened by an earlier daemon, and stored by the service manager */
    ADOPTED_FROM_STORE,
    ADOPTED_FROM_MASTER, /* opened by the parent master process, still listening */
};

/* The first descriptor of a service manager. */
#define ADOPTED_PASSED_FIRST 3

struct adopted_socket {
    STAILQ_ENTRY(adopted_socket) link;
    enum adopted_from from;
    int fd;           /* shared with the holder, until taken over by a listener */
    int number;       /* the service manager's number, from ADOPTED_PASSED_FIRST on; 0: none */
    const char *name; /* the service manager's name for it, or "" */
    bool ipv6only;
    struct listener *holder; /* holder of the socket until a configuration serves */
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
/* Adds a descriptor by the members from, fd, number and name, close-on-exec and non-blocking then.
 * Returns NULL; or the fault, a constant string, with errno or 0, and leaves the descriptor
 * alone. */
const char *adopted_add(struct adopted *adopted, const struct adopted_socket *passed);
/* Finds the service manager's sockets of a name or number. Returns the number of addresses, and
 * stores up to `max`; *ipv6only is the first socket's. */
unsigned adopted_find(const struct adopted *adopted, const char *name, struct address *out,
    unsigned max, bool *ipv6only);
/* Describes the service manager's sockets: `3 ("web") 0.0.0.0:80, ...`, cut to size, or "none". */
void adopted_describe(const struct adopted *adopted, char *text, size_t size);
/* Returns the holder of the sockets of this listener's address, or NULL; `adopted` may be NULL. */
struct listener *adopted_holder(const struct adopted *adopted, const struct listener *listener);
/* Ends the adoption, at the first call: `serving` have taken sockets over. Logs each unused socket.
 * Sockets of the service manager stay open: the daemon could not get them again. Sockets of the
 * store are closed with their queued clients, sockets of the other master, which serves on, at
 * once. `adopted` may be NULL. */
void adopted_finish(struct adopted *adopted, const struct listeners *serving, struct log *log);
/* In a child: closes sockets of other listeners; the child's listeners become the only holders. */
void adopted_close_others(struct adopted *adopted, const struct listeners *own);

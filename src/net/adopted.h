/* SPDX-License-Identifier: BSD-2-Clause */
/* Adopted sockets: listening sockets given to this process at the start, by the service manager or
 * by the parent master process. An address has a listener, the holder of its sockets, until a
 * configuration serves: the listeners of the configuration take sockets over from holders in the
 * same way as from the listeners of an earlier configuration. No socket is closed before the first
 * configuration serves. */
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

/* Adds a descriptor, close-on-exec and non-blocking from now on. Reads these members of `passed`:
 * from, fd, number, name. Returns NULL; or a description of the descriptor's fault, as a constant
 * string, with errno or 0, and an unchanged descriptor. */
const char *adopted_add(struct adopted *adopted, const struct adopted_socket *passed);

/* Finds the service manager's sockets of this name or number. Returns the number of their
 * addresses, and stores up to `max` addresses; *ipv6only is the first socket's. */
unsigned adopted_find(const struct adopted *adopted, const char *name, struct address *out,
    unsigned max, bool *ipv6only);
/* Describes the service manager's sockets: `3 ("web") 0.0.0.0:80, ...`, cut to size, or "none". */
void adopted_describe(const struct adopted *adopted, char *text, size_t size);

/* Returns the holder of the sockets of this listener's address, or NULL; `adopted` may be NULL. */
struct listener *adopted_holder(const struct adopted *adopted, const struct listener *listener);
/* Ends the adoption, at the first call: `serving` are the serving listeners, after taking sockets
 * over. Logs each socket not taken. The service manager's sockets stay open, because the daemon
 * could not get them again. Sockets from the manager's store are closed when all queued clients
 * have been closed; sockets of the other master process are closed at once, because the master
 * serves their clients. `adopted` may be NULL. */
void adopted_finish(struct adopted *adopted, const struct listeners *serving, struct log *log);
/* In a child: closes sockets of other listeners; the child's listeners become the only holders. */
void adopted_close_others(struct adopted *adopted, const struct listeners *own);

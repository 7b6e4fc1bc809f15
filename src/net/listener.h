/* SPDX-License-Identifier: BSD-2-Clause */
/* A listener: the sockets of one address, which the master opens and keeps, and workers inherit.
 * Invariant: a descriptor is -1 or open, and is closed by its last listener. */
#pragma once

#include "base/arena.h"
#include "base/log.h"
#include "net/address.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

struct conf_word;
struct listener_untouched;

struct listener_options {
    int backlog; /* -1: the system's greatest; default 511 */
    int rcvbuf;  /* bytes; 0: the system's default */
    int sndbuf;
    int fastopen; /* queue length; -1: off */
    bool deferred;
    bool reuseport;   /* a socket for each worker slot */
    bool bind;        /* a separate socket although a wildcard listens on the port */
    bool ipv6only;    /* default true */
    bool tcp_nodelay; /* inherited by accepted sockets */
    enum { LISTENER_KEEPALIVE_DEFAULT, LISTENER_KEEPALIVE_ON, LISTENER_KEEPALIVE_OFF } keepalive;
    int keepidle, keepintvl, keepcnt; /* seconds, seconds, count; 0: the system's default */
};

struct listener {
    STAILQ_ENTRY(listener) link;
    RB_ENTRY(listener) node;
    struct listeners *set; /* the set with this listener, or NULL (listener_set.c) */
    struct arena *arena;
    struct address address; /* with the kernel's choice, once open, where the port was 0 */
    char text[ADDRESS_TEXT];
    struct listener_options options;
    unsigned fd_n;                /* 1, or with reuseport one a worker slot */
    int *fds;                     /* -1: not open */
    void *owner;                  /* the user of its connections; opaque here */
    const struct conf_word *word; /* place in the configuration, or NULL; opaque here */
    bool adopted;      /* the sockets come from the listener of the previous configuration */
    bool beside;       /* bound with SO_REUSEPORT beside a listener of equal port */
    bool foreign;      /* bound by the service manager, which unlinks the path too */
    unsigned kept_n;   /* number of first `fds` to stay open for the next holder */
    unsigned stored_n; /* how many of `fds`, from the first, the service manager keeps copies of */
    dev_t path_device; /* the path of a unix socket, when it was bound; inode 0: not known */
    ino_t path_inode;
    bool path_lost;                      /* the path was deleted or replaced: bind again */
    struct listener_untouched *recorded; /* options of the service manager's sockets, or NULL */
    unsigned restored_n;                 /* how often options were put back */
    unsigned mended_n;                   /* how often sockets were shut down, and listen again */
    unsigned mend_failures;              /* in a row */
};

/* Many listeners: see listener_set.h. */
struct listeners {
    STAILQ_HEAD(, listener) list;          /* in the configuration's order */
    RB_HEAD(listener_tree, listener) tree; /* by address */
};

/* Rows of listener_untouched[] at most. */
#define LISTENER_UNTOUCHED_MOST 40

/* Socket options without a directive, of a new socket, or of a service manager's at the start. */
struct listener_untouched {
    bool known;
    int keepidle, keepintvl, keepcnt; /* the system's, for so_keepalive parameters of 0 */
    int rcvbuf, sndbuf, buf_lock;
    int values[LISTENER_UNTOUCHED_MOST];
};

/* The system's defaults, during one commit: zeros, until a listener of the family first asks. */
struct listener_system {
    bool restores;    /* options may differ though the listener was not adopted */
    unsigned changed; /* how many were put back then */
    struct listener_untouched in, in6;
};

static inline bool listener_is_unix(const struct listener *listener)
{
    return listener->address.any.sa_family == AF_UNIX;
}

/* Whether the descriptor is the listener's. */
static inline bool listener_has(const struct listener *listener, int fd)
{
    for (unsigned i = 0; i < listener->fd_n; i++)
        if (listener->fds[i] == fd)
            return true;
    return false;
}

static inline bool listener_is_open(const struct listener *listener)
{
    for (unsigned i = 0; i < listener->fd_n; i++)
        if (listener->fds[i] != -1)
            return true;
    return false;
}

/* Whether the line about an event that has come so often is logged: few of many are. */
static inline bool listener_is_told(unsigned times)
{
    return (times & (times - 1)) == 0;
}

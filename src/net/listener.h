/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets. The master opens them and keeps every one; workers inherit them.
 *
 * A listener is bound long before it listens: the sockets of a new configuration are prepared with
 * fb_listener_open, which nobody outside can notice, and go live with fb_listener_commit. */
#pragma once

#include "base/arena.h"
#include "base/log.h"
#include "net/address.h"

#include <bsd/sys/queue.h>
#include <stdbool.h>

struct fb_listen_options {
    int backlog; /* -1: the system's greatest; default 511 */
    int rcvbuf;  /* bytes; 0: the system's default */
    int sndbuf;
    int fastopen; /* queue length; -1: off */
    bool deferred;
    bool reuseport;   /* one socket a worker slot */
    bool bind;        /* a socket of its own although a wildcard listens on the port */
    bool ipv6only;    /* default true */
    bool tcp_nodelay; /* inherited by what is accepted */
    enum { FB_KEEPALIVE_DEFAULT, FB_KEEPALIVE_ON, FB_KEEPALIVE_OFF } keepalive;
    int keepidle, keepintvl, keepcnt; /* seconds, seconds, count; 0: the system's default */
};

struct fb_listener {
    STAILQ_ENTRY(fb_listener) link;
    struct fb_arena *arena;
    struct fb_address address; /* with the kernel's choice, once open, where the port was 0 */
    char text[FB_ADDRESS_TEXT];
    struct fb_listen_options options;
    unsigned fd_n;     /* 1, or with reuseport one a worker slot */
    int *fds;          /* -1: not open */
    void *owner;       /* whose connections these are: opaque here */
    bool adopted;      /* the sockets came from the listener of the configuration before */
    bool beside;       /* bound while another listens on its port, which must allow it */
    bool foreign;      /* the service manager has bound it: its path is not ours to unlink */
    unsigned kept_n;   /* the first of `fds`, which somebody keeps: closing forgets them only */
    unsigned stored_n; /* the first of `fds`, of which the service manager keeps copies */
};
STAILQ_HEAD(fb_listeners, fb_listener);

extern const struct fb_listen_options fb_listen_defaults;

/* A closed listener; NULL without memory. Memory is the arena's. A unix socket has no reuseport. */
struct fb_listener *fb_listener_create(struct fb_arena *arena, const struct fb_address *address,
    const struct fb_listen_options *options);

/* Gives it `slots` sockets (1 without reuseport): bound, close-on-exec, non-blocking, and not
 * listening. A unix socket's stale path (nobody answers a connect) is removed first; a live one is
 * an error. What `from` (or NULL), a listener with the same address, has open is taken over as it
 * is: both then name the same descriptors, and more than `slots` are kept, without reuseport too.
 * Where a service manager has passed fewer than reuseport asks for, they are shared, with a warning.
 * Returns 0, or -1 after an emerg line and with what was newly opened closed again. Two listeners
 * of one configuration on the same unix path are the caller's to refuse: before commit the first
 * one looks stale to the second. */
int fb_listener_open(struct fb_listener *listener, const struct fb_listener *from, unsigned slots,
    struct fb_log *log);

/* Sets every option on every socket and makes it listen (again, with a changed backlog). Options
 * that the kernel refuses are alerts, also that of ipv6only, which nothing can change on a kept
 * socket; -1 only where listen() itself fails, after an emerg line and with the others listening
 * (somebody else's bind and listen since the open are noticed only here). */
int fb_listener_commit(struct fb_listener *listener, struct fb_log *log);

/* One more socket of its address, which listens; -1 without memory. */
int fb_listener_add(struct fb_listener *listener, int fd);
/* Closes what it opened itself and what it adopted alike, but for what is kept. */
void fb_listener_close(struct fb_listener *listener);
/* Closes this one of its sockets. */
void fb_listener_drop(struct fb_listener *listener, int fd);
/* Takes back an open that will not be committed: closes only what is not also `from`'s, and unlinks
 * the unix socket that was made. */
void fb_listener_abandon(struct fb_listener *listener, const struct fb_listener *from);
/* Unlinks the path of a unix socket that no configuration listens on any more; unless it is stored:
 * then it is listened on still. */
void fb_listener_unlink(struct fb_listener *listener, struct fb_log *log);

/* Whether both are of one port and one is a wildcard, which takes in the other's address: the kernel
 * lets the second be bound and listen only where both allow it. */
bool fb_listener_overlaps(const struct fb_listener *a, const struct fb_listener *b);
/* Has its sockets allow others on the port, until it is taken back. */
void fb_listener_allow_others(const struct fb_listener *listener, bool allow);

/* The listener in `all` that can lend its sockets to `listener`, or NULL. */
struct fb_listener *fb_listener_find(
    const struct fb_listeners *all, const struct fb_listener *listener);

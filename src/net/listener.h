/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets. The master opens them and keeps every one; workers inherit them.
 *
 * Responsible for binding, listening, adopting and closing the sockets of one address. Never
 * accepts. A listener is bound long before it listens: fb_listener_open() prepares the sockets of a
 * new configuration, which no client can notice, and fb_listener_commit() makes them listen.
 * Invariant: a descriptor is -1 or open, and is closed by the last listener that names it. */
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
    bool reuseport;   /* a socket for each worker slot */
    bool bind;        /* a socket of its own although a wildcard listens on the port */
    bool ipv6only;    /* default true */
    bool tcp_nodelay; /* inherited by accepted sockets */
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
    void *owner;       /* the user of its connections; opaque here */
    bool adopted;      /* the sockets come from the listener of the previous configuration */
    bool beside;       /* bound while another listens on its port, which must allow it */
    bool foreign;      /* bound by the service manager, which also unlinks its path */
    unsigned kept_n;   /* how many of `fds`, from the first, stay open for another holder */
    unsigned stored_n; /* how many of `fds`, from the first, the service manager keeps copies of */
};
STAILQ_HEAD(fb_listeners, fb_listener);

extern const struct fb_listen_options fb_listen_defaults;

/* Creates a closed listener in the arena; NULL without memory. A unix socket has no reuseport. */
struct fb_listener *fb_listener_create(struct fb_arena *arena, const struct fb_address *address,
    const struct fb_listen_options *options);

/* Opens `slots` sockets (1 without reuseport): bound, close-on-exec, non-blocking, not listening
 * yet.
 *
 * - The previous holder `from` (NULL: none) has the same address. Its open sockets are adopted as
 *   they are: both listeners then name the same descriptors. More than `slots` stay, without
 *   reuseport too.
 * - Where a service manager has passed fewer sockets than reuseport asks for, the workers share
 *   them, with a warning.
 * - The path of a unix socket is removed first where a connect() to it is refused, and is an error
 *   where it is answered. The caller refuses two listeners of one configuration on the same path:
 *   before the commit the first looks unused to the second.
 *
 * Returns 0, or -1 after an emerg line, with the new sockets closed again. */
int fb_listener_open(struct fb_listener *listener, const struct fb_listener *from, unsigned slots,
    struct fb_log *log);

/* Sets every option on every socket, and makes it listen; a kept socket listens again, with its new
 * backlog. An option that the kernel refuses is an alert. Returns -1 only where listen() fails,
 * after an emerg line and with the others listening: another process has bound the address and
 * listens since the open. */
int fb_listener_commit(struct fb_listener *listener, struct fb_log *log);

/* Adds a socket of the same address, which listens; -1 without memory. */
int fb_listener_add(struct fb_listener *listener, int fd);
/* Closes the sockets, opened or adopted, but for the first kept_n. */
void fb_listener_close(struct fb_listener *listener);
/* Closes one of the sockets, unless it is among the first kept_n. */
void fb_listener_drop(struct fb_listener *listener, int fd);
/* Undoes an open that will not be committed: closes the sockets that are not also the previous
 * holder's, `from`, and unlinks the path of a unix socket that was made. */
void fb_listener_abandon(struct fb_listener *listener, const struct fb_listener *from);
/* Unlinks the path of a unix socket that no configuration listens on any more, unless the service
 * manager stores the socket: then it still listens. */
void fb_listener_unlink(struct fb_listener *listener, struct fb_log *log);

/* Whether both have one port and one of them is a wildcard, which includes the other's address: the
 * kernel lets the second be bound and listen only where both allow it. */
bool fb_listener_overlaps(const struct fb_listener *a, const struct fb_listener *b);
/* Lets other sockets be bound to the port, or no more. */
void fb_listener_allow_others(const struct fb_listener *listener, bool allow);

/* Finds a listener in `all` with the same address and open sockets, which `listener` can adopt; or
 * NULL. */
struct fb_listener *fb_listener_find(
    const struct fb_listeners *all, const struct fb_listener *listener);
/* Asserts what holds for a listener in every state. */
void listener_check(const struct fb_listener *listener);

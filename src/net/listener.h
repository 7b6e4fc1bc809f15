/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets. The master opens them and keeps every one; workers inherit them.
 *
 * Responsible for binding, listening, adopting and closing the sockets of one address. Never
 * accepts. A listener is bound long before it listens: listener_open() prepares the sockets of a
 * new configuration, which no client can notice, and listener_commit() makes them listen.
 * Invariant: a descriptor is -1 or open, and is closed by the last listener that names it. */
#pragma once

#include "base/arena.h"
#include "base/log.h"
#include "net/address.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <sys/types.h>

struct conf_word;
struct listener_untouched;

struct listener_options {
    int backlog; /* -1: the system's greatest; default 511 */
    int rcvbuf;  /* bytes; 0: the system's default */
    int sndbuf;
    int fastopen; /* queue length; -1: off */
    bool deferred;
    bool reuseport;   /* a socket for each worker slot */
    bool bind;        /* a socket of its own although a wildcard listens on the port */
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
    bool beside;       /* bound while another listens on its port, which must allow it */
    bool foreign;      /* bound by the service manager, which also unlinks its path */
    unsigned kept_n;   /* how many of `fds`, from the first, stay open for another holder */
    unsigned stored_n; /* how many of `fds`, from the first, the service manager keeps copies of */
    dev_t path_device; /* the path of a unix socket, when it was bound; inode 0: not known */
    ino_t path_inode;
    bool path_lost; /* somebody else has deleted or replaced the path: it is bound again */
    struct listener_untouched *recorded; /* options of what the manager has passed, or NULL */
    unsigned restored_n;                 /* how often options were put back */
    unsigned mended_n;                   /* how often sockets were shut down, and listen again */
    unsigned mend_failures;              /* in a row */
};

/* Many listeners; listener_set.h has what is done with them. */
struct listeners {
    STAILQ_HEAD(, listener) list;          /* in the configuration's order */
    RB_HEAD(listener_tree, listener) tree; /* by address */
};

extern const struct listener_options listener_defaults;

/* Rows of listener_untouched[] at most. */
#define LISTENER_UNTOUCHED_MOST 40

/* Socket options without a directive: their values on a new socket, or on a socket of the service
 * manager when it was passed. */
struct listener_untouched {
    bool known;
    int keepidle, keepintvl, keepcnt; /* the system's, for so_keepalive parameters of 0 */
    int rcvbuf, sndbuf, buf_lock;
    int values[LISTENER_UNTOUCHED_MOST];
};

/* The system's defaults, for the time of one commit: zeros, until the first listener of a family
 * that wants them asks for all. */
struct listener_system {
    bool restores;    /* options may differ though the listener was not adopted */
    unsigned changed; /* how many were put back then */
    struct listener_untouched in, in6;
};

/* Creates a closed listener in the arena; NULL without memory. A unix socket has no reuseport. */
struct listener *listener_create(
    struct arena *arena, const struct address *address, const struct listener_options *options);

/* Opens `slots` sockets (1 without reuseport): bound, close-on-exec, non-blocking, not listening
 * yet.
 *
 * - The previous holder `from` (NULL: none) has the same address. Its open sockets are adopted as
 *   they are: both listeners then name the same descriptors. More than `slots` stay, without
 *   reuseport too.
 * - One whose path is lost is not adopted: the path is bound again.
 * - Where a service manager has passed fewer sockets than reuseport asks for, the workers share
 *   them, with a warning.
 * - The path of a unix socket is removed first where a connect() to it is refused, and is an error
 *   where it is answered. The caller refuses two listeners of one configuration on the same path:
 *   before the commit the first looks unused to the second.
 *
 * Returns 0, or -1 after an emerg line, with the new sockets closed again. */
int listener_open(
    struct listener *listener, const struct listener *from, unsigned slots, struct log *log);

/* Sets every option on every socket, and makes it listen; a kept socket listens again, with its new
 * backlog, even if it was shut down. An option that the kernel refuses is an alert. Returns -1 only
 * where listen() fails, after an emerg line and with the others listening: another process has
 * bound the address and listens since the open. */
int listener_commit(struct listener *listener, struct listener_system *system, struct log *log);

/* Makes one bound socket listen, with every option set on it; -1 with errno. */
int listener_listen(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log);
/* Opens another socket of the same address: bound, not listening yet; -1 after an emerg line. The
 * path of a unix socket is removed first, as listener_open() does it. */
int listener_open_socket(struct listener *listener, struct log *log);

/* Whether another process listens on the address of a listener without open sockets, so that
 * listener_open() would fail. A socket is bound to it for a moment, or connected to it. */
bool listener_is_taken(const struct listener *listener, struct log *log);
/* Whether a socket does not listen: another process has shut it down or connected it
 * (listener_mend.c). */
bool listener_is_broken(const struct listener *listener, int fd);
/* Ends the connection of a socket that somebody has connected, with a reset, and without a wait. */
void listener_disconnect(int fd);
/* Disconnects a broken TCP socket, and binds it again where it has lost its port, so that it can
 * listen; -1 with errno. */
int listener_revive(struct listener *listener, int fd, struct log *log);
/* Makes a broken socket listen again beside those of `others`. The same does where that is
 * possible, else, if one `may_replace` it, a new one under its descriptor, which the other holders
 * of the old one have to be given. Of many times few are logged, with their number. Returns -1
 * where it fails, with an emerg line at times. */
enum { LISTENER_MENDED, LISTENER_REPLACED };
int listener_mend(struct listener *listener, int fd, const struct listeners *others,
    bool may_replace, struct log *log);

/* Sets the options and the backlog of a socket that listens again, which another process may have
 * changed (listener_restore.c). Of many times that any had changed few are logged. */
void listener_restore(
    struct listener *listener, int fd, struct listener_system *system, struct log *log);

/* Adds a socket of the same address, which listens; -1 without memory. */
int listener_add(struct listener *listener, int fd);
/* Closes the sockets, opened or adopted, but for the first kept_n. */
void listener_close(struct listener *listener);
/* Whether the descriptor is one of its sockets. */
bool listener_has(const struct listener *listener, int fd);
/* Whether one of its sockets is open. */
bool listener_is_open(const struct listener *listener);
/* Closes one of the sockets, unless it is among the first kept_n. */
void listener_close_socket(struct listener *listener, int fd);
/* Closes the sockets but for those that the next listener of the address, `next`, has too. */
void listener_hand_over(struct listener *listener, const struct listener *next);
/* Undoes an open that will not be committed: closes the sockets that are not also the previous
 * holder's, `from`, and unlinks the path of a unix socket that was made. */
void listener_undo_open(struct listener *listener, const struct listener *from);
/* Unlinks the path of a unix socket that no configuration listens on any more, unless the service
 * manager stores the socket: then it still listens. */
void listener_unlink(struct listener *listener, struct log *log);

/* Whether the path of our unix socket does not lead to it any more, because somebody else has
 * deleted or replaced it. */
bool listener_is_path_lost(const struct listener *listener);
/* Whether a process listens on the path of a unix socket. */
bool listener_is_path_in_use(const struct listener *listener);

/* Whether both have one port and one of them is a wildcard, which includes the other's address: the
 * kernel lets the second be bound and listen only where both allow it. */
bool listener_overlaps(const struct listener *a, const struct listener *b);
/* Lets other sockets be bound to the port, or no more. */
void listener_allow_others(const struct listener *listener, bool allow);

/* Asserts what holds for a listener in every state. */
void listener_check(const struct listener *listener);

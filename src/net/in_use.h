/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses on which sockets of this machine listen, as far as the system shows them
 * (os_listening_visit()): to find out, without a socket, what a bind() would meet. */
#pragma once

#include "net/listener.h"

#include <sys/types.h>

struct in_use_socket {
    struct address address;
    unsigned long inode; /* the number that /proc/PID/fd has */
    uid_t uid;           /* the maker; (uid_t)-1: not known, as for a unix socket */
};

struct in_use {
    struct in_use_socket *sockets;
    size_t n, room;
};

/* Reads the tables from below `root` ("" in the daemon); -1 without memory. */
int in_use_read(struct in_use *in_use, const char *root);
void in_use_done(struct in_use *in_use);

/* Returns the first socket after `after` (NULL: of all) that listens where this listener would be
 * bound, or NULL. *sure is false where that depends on an option (IPV6_V6ONLY) of the other, or
 * on its network interface, which the tables lack. */
const struct in_use_socket *in_use_find(const struct in_use *in_use,
    const struct in_use_socket *after, const struct listener *listener, bool *sure);

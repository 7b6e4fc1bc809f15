/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of this machine's listening sockets (os_listening_visit()), to predict a bind(). */
#pragma once

#include "net/listener.h"

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
/* Returns the first conflicting socket after `after` (NULL: of all), or NULL. *sure is false where
 * IPV6_V6ONLY of the socket or the network interface, absent in the tables, decides. */
const struct in_use_socket *in_use_find(const struct in_use *in_use,
    const struct in_use_socket *after, const struct listener *listener, bool *sure);

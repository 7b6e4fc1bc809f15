/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of `allow` and `deny`: which clients of a server may have a session.
 *
 * Responsible for the verdict of the first rule that matches a client's address. A client that no
 * rule matches is allowed. Rules of IPv4, of IPv6 and of unix sockets are lists of their own, in
 * each of which `all` stands; an IPv4-mapped client is judged by the rules of IPv4, and by those of
 * IPv6 where there are no others. */
#pragma once

#include "base/arena.h"
#include "net/address.h"

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>

struct fb_conn;

/* A rule as it was written. */
struct access_rule {
    STAILQ_ENTRY(access_rule) link;
    struct address_block block; /* AF_UNSPEC: all clients; AF_UNIX: those of unix sockets */
    bool allows;
};
STAILQ_HEAD(access_rules, access_rule);

/* The rules of some servers, worked out. */
struct access;

/* Works the rules out, in the arena; NULL without memory. */
const struct access *access_build(struct arena *arena, const struct access_rules *rules);
/* Returns whether the rules allow the client. The time grows with the logarithm of the number of
 * rules. */
bool access_allows(const struct access *access, const struct sockaddr *client);
/* Handles the phase of access of a session, by the struct access: 403 and a line in the log where
 * the client is denied. */
unsigned access_run(struct fb_conn *conn, const void *access);

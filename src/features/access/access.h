/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of `allow` and `deny`: which clients of a server may have a session.
 *
 * Responsible for the verdict of the first rule that matches a client's address; a client without a
 * rule is allowed. IPv4, IPv6 and unix sockets have lists of their own, each with the rules of
 * `all`; an IPv4-mapped client is judged by the rules of IPv4, or of IPv6 where IPv4 has none. */
#pragma once

#include "base/arena.h"
#include "net/address.h"

#include <bsd/sys/queue.h>
#include <stdbool.h>

struct conf_directive;

/* A rule as written. */
struct access_rule {
    STAILQ_ENTRY(access_rule) link;
    struct address_block block; /* AF_UNSPEC: all clients; AF_UNIX: clients of unix sockets */
    bool allows;
};
STAILQ_HEAD(access_rules, access_rule);

/* The rules of some servers, worked out. */
struct access;

/* The rules of a block, and of the inheriting servers. */
struct access_setting {
    struct access_rules rules;
    const struct access *built;       /* NULL: not yet asked for by a server */
    const struct conf_directive *all; /* the first rule for all clients, or NULL */
    bool warned;                      /* about a rule behind `all` */
};

/* The feature's struct of a server: a block with either directive inherits none. */
struct access_values {
    struct access_setting *access; /* NULL: no rules */
};

/* Works the rules out, in the arena; NULL without memory. */
const struct access *access_build(struct arena *arena, const struct access_rules *rules);
/* Returns whether the rules allow the client, in a time logarithmic in the number of rules. */
bool access_allows(const struct access *access, const struct sockaddr *client);

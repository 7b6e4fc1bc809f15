/* SPDX-License-Identifier: BSD-2-Clause */
/* The peers of a group as a worker knows them: the addresses of its servers. */
#pragma once

#include "upstream/upstream.h"

#define PEER_KIND KIND('P', 'e', 'e', 'r')

struct peer {
    unsigned kind; /* PEER_KIND */
    struct fb_target target;
    const struct upstream_server *server;
    unsigned index; /* in the group's list */
};

struct peers {
    struct upstream *upstream;
    struct peer *list;
    unsigned n;
    unsigned next; /* the turn of round robin */
};

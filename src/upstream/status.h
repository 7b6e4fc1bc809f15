/* SPDX-License-Identifier: BSD-2-Clause */
/* The numbers of the peers in a zone, as read by the master. */
#pragma once

#include "upstream/zone.h"

/* Numbers of a peer; a worker may have invented any. */
struct upstream_numbers {
    const struct upstream_server *server;
    char address[ADDRESS_TEXT]; /* printable; "": no worker uses an address of the name */
    bool is_used;               /* workers use the entry; else the numbers are not known */
    enum upstream_operator said;
    enum peer_health health;
    bool failed;    /* max_fails was reached, within fail_timeout */
    uint32_t conns; /* tries that run */
    uint64_t sessions, failures;
    uint64_t troubles[PEER_TROUBLES];
};

/* Calls `each` for every peer of the group, by servers, and for a server without any; -1 with
 * errno: ENOTSUP without a zone, ENOMEM. A single pass reads the zone for all groups, until
 * forgotten. */
int upstream_status_read(const struct upstream *upstream, uint64_t now_ms,
    void (*each)(void *arg, const struct upstream_numbers *numbers), void *arg);
/* Forgets which entries the zone has. */
void upstream_status_forget(struct upstream_zone *zone);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Refreshes the peers of a group by the table of addresses (addresses.h), in workers that serve:
 * when addresses have changed, before a choice or on a message. Never asks for a name. */
#pragma once

#include "upstream/resolve_set.h"
#include "upstream/upstreams.h"

/* Begins to refresh a group with peers; -1 without memory, with nothing left to undo. */
int refresh_open(struct upstreams *upstreams, struct upstream *upstream);
void refresh_close(struct upstream *upstream);
/* Reads the table after a change, and wakes waiting sessions. */
void refresh_group(struct upstreams *upstreams, struct upstream *upstream);
/* Does the same for all groups. */
void refresh_all(struct upstreams *upstreams);
/* The timer upstreams->names_due. */
void refresh_expired(struct loop *loop, struct timer *timer);
/* Gives the server new addresses, and replaces *found by a copy of the set; -1 without memory. */
int refresh_replace(struct upstream *upstream, const struct upstream_server *server,
    const struct resolve_set *set, struct resolve_set **found);

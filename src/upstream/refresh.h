/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of a group's servers as a worker that serves follows them: it reads what is known of
 * them (known.h), and asks nobody. The group's peers are replaced when their addresses have
 * changed: before a choice, or when another process says so. */
#pragma once

#include "upstream/resolve_set.h"
#include "upstream/upstreams.h"

/* Begins to follow the names of the group's servers, whose peers there are; -1 without memory, with
 * nothing left to undo. */
int follow_open(struct upstreams *upstreams, struct upstream *upstream);
void follow_close(struct upstream *upstream);

/* Reads what is known by now, and wakes whoever has waited for that. */
void follow_heed(struct upstreams *upstreams, struct upstream *upstream);
/* Does the same for all groups. */
void follow_heed_all(struct upstreams *upstreams);
/* The timer upstreams->names_due. */
void follow_expired(struct loop *loop, struct timer *timer);

/* Gives the server these addresses instead of those in *found, which is replaced by a copy of the
 * set; -1 without memory. */
int follow_take(struct upstream *upstream, const struct upstream_server *server,
    const struct resolve_set *set, struct resolve_set **found);

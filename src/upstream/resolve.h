/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks what the names of a group's servers stand for, and again when an answer has expired: on
 * behalf of all workers, who read what is written down of it (known.h), or of one session.
 *
 * Responsible for the addresses of each server that has a name, and for the log lines about them.
 * Never calls a protocol, and never blocks. Invariant: a name is being asked for, has a timer, or
 * is known for as long as this process lives. */
#pragma once

#include "upstream/upstreams.h"

/* Begins to ask for the names of the group's servers; -1 without memory, with nothing left to undo.
 * A session's group has its peers. */
int resolve_open(struct upstreams *upstreams, struct upstream *upstream);
void resolve_close(struct upstream *upstream);

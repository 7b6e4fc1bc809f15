/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks for the names of a group's servers, and again when an answer has expired, for the table of
 * addresses (addresses.h), or for a session, and logs news. Never calls a protocol, and never
 * blocks. Invariant: a name is being asked for, has a timer, or is resolved for the life of the
 * process. */
#pragma once

#include "upstream/upstreams.h"

/* Begins to ask; -1 without memory, with nothing left to undo. A session's group has its peers. */
int resolve_open(struct upstreams *upstreams, struct upstream *upstream);
void resolve_close(struct upstream *upstream);

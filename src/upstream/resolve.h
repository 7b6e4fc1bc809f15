/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of a group's servers in a worker: what they stand for, and when they are asked for
 * again.
 *
 * Responsible for the addresses of each server that has a name, for the log lines about them, and
 * for waking whoever waits for a first answer. Never calls a protocol, and never blocks. Invariant:
 * a name is being asked for, has a timer, or is known for as long as the worker lives. */
#pragma once

#include "upstream/upstreams.h"

/* Begins to ask for the names of the group's servers, whose peers there are; -1 without memory,
 * with nothing left to undo. */
int resolve_open(struct upstreams *upstreams, struct upstream *upstream);
void resolve_close(struct upstream *upstream);

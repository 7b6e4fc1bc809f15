/* SPDX-License-Identifier: BSD-2-Clause */
/* The operator's words about the servers of a group, in its zone. */
#pragma once

#include "upstream/zone.h"

/* Returns a number changed by every word. */
uint32_t upstream_operators_version(const struct upstream_zone *zone);
/* Returns what is said of the address, or else of the server, and since when: monotonic ms, or
 * 0. */
enum upstream_operator upstream_operator_said(
    const struct upstream_zone *zone, const struct upstream_place *place, uint64_t *since_ms);
/* The master: has all workers use a server, by its name or an address, as the operator says, from
 * now on, and over a reload and an upgrade; -1 with errno: ENOTSUP without a zone, ENOSPC where the
 * zone is full. */
int upstream_operator_set(const struct upstream *upstream, const char *server,
    enum upstream_operator to, uint64_t now_ms);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The entries of a zone, for the lists of peers. */
#pragma once

#include "upstream/zone.h"

/* Returns a listed peer's state, perhaps new, and *entry; NULL: the zone is full. */
struct peer_state *upstream_zone_join(struct upstream_zone *zone,
    const struct upstream_place *place, uint64_t now_ms, uint32_t *entry);
/* Notes that the peer has left the list. */
void upstream_zone_unlist(struct upstream_zone *zone, uint32_t entry);
void upstream_zone_leave(struct upstream_zone *zone, uint32_t entry);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Lies about servers, with knowledge of the zone's layout: in every entry the failures have come in
 * an endless time, and cannot be forgotten. */
#include "module/attack_private.h"
#include "upstream/zone_private.h"

#include <string.h>

/* The addresses of a test's servers begin so. */
static const char address[] = "127.0.0.1:";

static void fail_entries(const struct attack_mapping *mapping, unsigned *n)
{
    for (size_t at = 0; at + sizeof(struct upstream_zone_entry) <= mapping->n; at += CACHE_LINE) {
        struct upstream_zone_entry *entry = (void *)(mapping->p + at);

        if (memcmp(entry->address, address, sizeof(address) - 1) != 0)
            continue;
        PEER_STORE(entry->state.accessed_ms, UINT64_MAX);
        PEER_STORE(entry->state.checked_ms, 0);
        PEER_STORE(entry->state.fails, UINT32_MAX);
        ++*n;
    }
}

unsigned attack_servers(void)
{
    static struct attack attack;
    unsigned n = 0;

    attack = (struct attack) { .own = -1 };
    attack_find_mappings(&attack);
    for (unsigned i = 0; i < attack.mapping_n; i++)
        fail_entries(&attack.mappings[i], &n);
    return n;
}

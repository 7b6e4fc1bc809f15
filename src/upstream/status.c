/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the numbers of peers in a zone for the master, which takes no lock for that, and believes
 * nothing that workers can write. */
#include "upstream/zone_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A server by the key of its names. */
struct keyed_server {
    uint64_t key;
    const struct upstream_server *server;
};

/* Returns the servers of the group; NULL without memory. */
static struct keyed_server *key_servers(
    const struct upstream *upstream, const struct upstream_zone_header *header)
{
    struct keyed_server *servers = malloc((upstream->server_n + 1) * sizeof(*servers));
    const struct upstream_server *server;
    unsigned n = 0;

    if (servers == NULL)
        return NULL;
    STAILQ_FOREACH (server, &upstream->servers, link) {
        assert(n < upstream->server_n);
        servers[n++] = (struct keyed_server) {
            .key = upstream_zone_server_key(header, upstream->name, server->name),
            .server = server,
        };
    }
    return servers;
}

/* Returns the server that an entry says it is of, or NULL. */
static const struct upstream_server *find_server(
    const struct keyed_server *servers, unsigned n, uint64_t key)
{
    for (unsigned i = 0; i < n; i++)
        if (servers[i].key == key)
            return servers[i].server;
    return NULL;
}

static void read_entry(const struct upstream_zone_entry *entry, struct upstream_numbers *numbers)
{
    const struct peer_state *state = &entry->state;
    uint32_t health = PEER_LOAD(state->health);

    memcpy(numbers->address, entry->address, sizeof(numbers->address));
    numbers->address[sizeof(numbers->address) - 1] = '\0';
    numbers->health = PEER_HEALTH_UNCHECKED;
    if (numbers->server->is_checked && health <= PEER_HEALTH_BAD)
        numbers->health = (enum peer_health)health;
    numbers->fails = PEER_LOAD(state->fails);
    numbers->sessions = PEER_LOAD(state->sessions);
    numbers->sent = PEER_LOAD(state->sent);
    numbers->received = PEER_LOAD(state->received);
    numbers->failures = PEER_LOAD(state->failures);
    numbers->disabled = PEER_LOAD(state->disabled);
    for (unsigned i = 0; i < 3; i++)
        numbers->times[i] = PEER_LOAD(state->times[i]);
}

int upstream_status_read(const struct upstream *upstream, uint64_t now_ms,
    void (*each)(void *arg, const struct upstream_numbers *numbers), void *arg)
{
    const struct upstream_zone *zone = upstream->zone;
    char *base = zone != NULL ? zone_memory(zone->zone) : NULL;
    struct upstream_zone_layout l;
    struct keyed_server *servers;

    if (base == NULL) {
        errno = ENOTSUP;
        return -1;
    }
    assert(zone_memory(zone->rows) != NULL);
    l = upstream_zone_layout(&zone->shape);
    servers = key_servers(upstream, (void *)base);
    if (servers == NULL)
        return -1;
    for (uint32_t i = 0; i < l.n; i++) {
        const struct upstream_zone_entry *entries = (void *)(base + l.entries);
        struct upstream_numbers numbers;
        uint64_t since_ms;
        int64_t sum;

        numbers.server = find_server(servers, upstream->server_n, ZONE_LOAD(entries[i].server));
        if (numbers.server == NULL)
            continue;
        sum = shm_metrics_total(zone_memory(zone->rows), &zone->rows_shape, i);
        if (upstream_zone_uses(sum) == 0)
            continue;
        read_entry(&entries[i], &numbers);
        numbers.conns = (uint32_t)((uint64_t)sum & UINT32_MAX);
        numbers.said =
            upstream_operator_said(zone, upstream->name, numbers.server->name, &since_ms);
        numbers.failed = peer_state_has_failed(&entries[i].state, numbers.server, now_ms);
        each(arg, &numbers);
    }
    free(servers);
    return 0;
}

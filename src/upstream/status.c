/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the numbers of peers in a zone for the master, without a lock and without trust. */
#include "upstream/status.h"

#include "upstream/zone_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The key of a server's names, with an entry of the server, or its place in the group. */
struct keyed {
    uint64_t key;
    uint32_t n;
};

/* The used entries of one pass over a zone, sorted, for all groups of the zone. */
struct upstream_zone_reading {
    uint32_t n;
    struct keyed entries[];
};

/* A reader of numbers. */
struct reader {
    const struct upstream *upstream;
    uint64_t now_ms;
    void (*each)(void *arg, const struct upstream_numbers *numbers);
    void *arg;
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->n < y->n ? -1 : x->n > y->n;
}

/* Returns the sum of all rows for an entry. */
static int64_t sum_of_entry(const struct upstream_zone *zone, uint32_t entry)
{
    return shm_metrics_total(zone_memory(zone->rows), &zone->rows_shape, entry);
}

static const struct upstream_zone_entry *entries_of(const struct upstream_zone *zone)
{
    return (const void *)((const char *)zone_memory(zone->zone) +
                          upstream_zone_layout(&zone->shape).entries);
}

/* Reads the zone for all groups listed now; -1 without memory. */
static int read_zone(struct upstream_zone *zone)
{
    const struct upstream_zone_entry *entries = entries_of(zone);
    uint32_t n = upstream_zone_layout(&zone->shape).n;
    struct upstream_zone_reading *reading;

    if (zone->reading != NULL)
        return 0;
    reading = malloc(sizeof(*reading) + n * sizeof(*reading->entries));
    if (reading == NULL)
        return -1;
    reading->n = 0;
    zone->looked_at += n;
    for (uint32_t i = 0; i < n; i++)
        if (ZONE_LOAD(entries[i].key[0]) != 0 && upstream_zone_uses(sum_of_entry(zone, i)) > 0)
            reading->entries[reading->n++] = (struct keyed) { ZONE_LOAD(entries[i].server), i };
    qsort(reading->entries, reading->n, sizeof(*reading->entries), compare_keyed);
    zone->reading = reading;
    return 0;
}

void upstream_status_forget(struct upstream_zone *zone)
{
    free(zone->reading);
    zone->reading = NULL;
}

/* Returns the place of the server's first entry, or of the next server's. */
static uint32_t find_first_entry(const struct upstream_zone_reading *reading, uint64_t key)
{
    uint32_t from = 0, to = reading->n;

    while (from < to) {
        uint32_t middle = from + (to - from) / 2;

        if (reading->entries[middle].key < key)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Returns the servers' keys by place, 0 for a repeated name; NULL without memory. */
static uint64_t *key_servers(const struct upstream *upstream)
{
    struct keyed *sorted = calloc(upstream->server_n + 1, sizeof(*sorted));
    uint64_t *keys = calloc(upstream->server_n + 1, sizeof(*keys));
    const struct upstream_zone_header *header = zone_memory(upstream->zone->zone);
    const struct upstream_server *server;
    uint32_t n = 0;

    if (sorted != NULL && keys != NULL) {
        STAILQ_FOREACH (server, &upstream->servers, link) {
            sorted[n].key = upstream_zone_server_key(header, upstream->name, server->name);
            sorted[n].n = n;
            n++;
        }
        assert(n == upstream->server_n);
        qsort(sorted, n, sizeof(*sorted), compare_keyed);
        for (uint32_t i = 0; i < n; i++)
            if (i == 0 || sorted[i].key != sorted[i - 1].key)
                keys[sorted[i].n] = sorted[i].key;
    }
    if (sorted == NULL) {
        free(keys);
        keys = NULL;
    }
    free(sorted);
    return keys;
}

/* Copies the address of a peer; false where a worker has written no address. */
static bool copy_peer_address(const struct upstream_server *server,
    const struct upstream_zone_entry *entry, char address[ADDRESS_TEXT])
{
    static const char known[] = "0123456789abcdefABCDEF.:[]";

    if (server->target != NULL) {
        snprintf(address, ADDRESS_TEXT, "%s", server->target->text);
        return true;
    }
    memcpy(address, entry->address, ADDRESS_TEXT);
    address[ADDRESS_TEXT - 1] = '\0';
    return address[0] != '\0' && address[strspn(address, known)] == '\0';
}

static void read_peer_state(const struct peer_state *state, struct upstream_numbers *numbers)
{
    uint32_t health = PEER_LOAD(state->health);

    if (numbers->server->is_checked && health <= PEER_HEALTH_BAD)
        numbers->health = (enum peer_health)health;
    numbers->sessions = PEER_LOAD(state->sessions);
    numbers->failures = PEER_LOAD(state->failures);
    for (unsigned i = 0; i < PEER_TROUBLES; i++)
        numbers->troubles[i] = PEER_LOAD(state->troubles[i]);
}

static void report_numbers(const struct reader *reader, struct upstream_numbers *numbers)
{
    const struct upstream_place place = { reader->upstream->name, numbers->server->name,
        numbers->address };
    uint64_t since_ms;

    numbers->said = upstream_operator_said(reader->upstream->zone, &place, &since_ms);
    reader->each(reader->arg, numbers);
}

/* Reports the used entries of a server, or that there are none. */
static void report_server(
    const struct reader *reader, const struct upstream_server *server, uint64_t key)
{
    const struct upstream_zone *zone = reader->upstream->zone;
    const struct upstream_zone_reading *reading = zone->reading;
    struct upstream_numbers unused = { .server = server };
    uint32_t i = find_first_entry(reading, key);
    bool is_used = false;

    for (; i < reading->n && reading->entries[i].key == key; i++) {
        const struct upstream_zone_entry *entry = &entries_of(zone)[reading->entries[i].n];
        struct upstream_numbers numbers = { .server = server, .is_used = true };

        if (!copy_peer_address(server, entry, numbers.address))
            continue;
        is_used = true;
        numbers.conns =
            (uint32_t)((uint64_t)sum_of_entry(zone, reading->entries[i].n) & UINT32_MAX);
        numbers.failed = peer_has_failed(&entry->state, server, reader->now_ms);
        read_peer_state(&entry->state, &numbers);
        report_numbers(reader, &numbers);
    }
    if (is_used)
        return;
    if (server->target != NULL)
        copy_peer_address(server, NULL, unused.address);
    report_numbers(reader, &unused);
}

int upstream_status_read(const struct upstream *upstream, uint64_t now_ms,
    void (*each)(void *arg, const struct upstream_numbers *numbers), void *arg)
{
    const struct reader reader = { upstream, now_ms, each, arg };
    const struct upstream_server *server;
    uint32_t place = 0;
    uint64_t *keys;

    if (upstream->zone == NULL || zone_memory(upstream->zone->zone) == NULL) {
        errno = ENOTSUP;
        return -1;
    }
    assert(zone_memory(upstream->zone->rows) != NULL);
    if (read_zone(upstream->zone) == -1 || (keys = key_servers(upstream)) == NULL)
        return -1;
    STAILQ_FOREACH (server, &upstream->servers, link) {
        if (keys[place] != 0)
            report_server(&reader, server, keys[place]);
        place++;
    }
    free(keys);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the numbers of peers in a zone for the master, without a lock and without trust in memory
 * writable by workers. */
#include "upstream/status.h"

#include "upstream/operators.h"
#include "upstream/zone_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An entry in use, by server key. */
struct used_entry {
    uint64_t server;
    uint32_t entry;
};

/* Findings of one pass over a zone, in the order of the keys, for all groups of the zone. */
struct upstream_zone_reading {
    uint32_t n;
    struct used_entry entries[];
};

/* A server by the key of its names, at its place in the group. The first stands for all servers of
 * a name. */
struct keyed_server {
    uint64_t key;
    const struct upstream_server *server;
    uint32_t place;
};

/* A server's entry; UINT32_MAX: none. */
struct server_entry {
    const struct upstream_server *server;
    uint32_t place, entry;
};

/* A group that is read. */
struct reading {
    const struct upstream *upstream;
    const struct upstream_zone_entry *entries;
    const struct upstream_zone_reading *zone;
    struct keyed_server *servers; /* server_n of these */
    struct server_entry *found;
    uint32_t n;
    uint64_t now_ms;
};

/* Returns the sum of all rows for an entry. */
static int64_t sum_of_entry(const struct upstream_zone *zone, uint32_t entry)
{
    return shm_metrics_total(zone_memory(zone->rows), &zone->rows_shape, entry);
}

/* ---- The zone ---- */

static int compare_used_entries(const void *a, const void *b)
{
    const struct used_entry *x = a, *y = b;

    if (x->server != y->server)
        return x->server < y->server ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* Reads the zone for all groups listed now; -1 without memory. */
static int read_entries(struct upstream_zone *zone)
{
    const char *base = zone_memory(zone->zone);
    struct upstream_zone_layout l = upstream_zone_layout(&zone->shape);
    const struct upstream_zone_entry *entries = (const void *)(base + l.entries);
    struct upstream_zone_reading *reading;

    if (zone->reading != NULL)
        return 0;
    reading = malloc(sizeof(*reading) + l.n * sizeof(*reading->entries));
    if (reading == NULL)
        return -1;
    reading->n = 0;
    zone->looked_at += l.n;
    for (uint32_t i = 0; i < l.n; i++)
        if (ZONE_LOAD(entries[i].key[0]) != 0 && upstream_zone_uses(sum_of_entry(zone, i)) > 0)
            reading->entries[reading->n++] =
                (struct used_entry) { .server = ZONE_LOAD(entries[i].server), .entry = i };
    qsort(reading->entries, reading->n, sizeof(*reading->entries), compare_used_entries);
    zone->reading = reading;
    return 0;
}

void upstream_status_forget(struct upstream_zone *zone)
{
    free(zone->reading);
    zone->reading = NULL;
}

/* Returns the first entry of the server; reading->n: none. */
static uint32_t find_first(const struct upstream_zone_reading *reading, uint64_t server)
{
    uint32_t from = 0, to = reading->n;

    while (from < to) {
        uint32_t middle = from + (to - from) / 2;

        if (reading->entries[middle].server < server)
            from = middle + 1;
        else
            to = middle;
    }
    return from < reading->n && reading->entries[from].server == server ? from : reading->n;
}

/* ---- The group ---- */

static int compare_servers(const void *a, const void *b)
{
    const struct keyed_server *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Sorts the servers by key, and within a name by place. */
static void key_servers(struct reading *reading, const struct upstream_zone_header *header)
{
    const struct upstream *upstream = reading->upstream;
    const struct upstream_server *server;
    uint32_t n = 0;

    STAILQ_FOREACH (server, &upstream->servers, link) {
        assert(n < upstream->server_n);
        reading->servers[n] = (struct keyed_server) {
            .key = upstream_zone_server_key(header, upstream->name, server->name),
            .server = server,
            .place = n,
        };
        n++;
    }
    assert(n == upstream->server_n);
    qsort(reading->servers, n, sizeof(*reading->servers), compare_servers);
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

/* Adds an entry of the server; UINT32_MAX: none. */
static void add_found(struct reading *reading, const struct keyed_server *server, uint32_t entry)
{
    reading->found[reading->n++] =
        (struct server_entry) { .server = server->server, .place = server->place, .entry = entry };
}

/* Finds the used entries of a server, or notes that there are none. */
static void find_entries(struct reading *reading, const struct keyed_server *server)
{
    const struct upstream_zone_reading *zone = reading->zone;
    uint32_t before = reading->n, i = find_first(zone, server->key);

    for (; i < zone->n && zone->entries[i].server == server->key; i++) {
        uint32_t entry = zone->entries[i].entry;
        char address[ADDRESS_TEXT];

        if (copy_peer_address(server->server, &reading->entries[entry], address))
            add_found(reading, server, entry);
    }
    if (reading->n == before)
        add_found(reading, server, UINT32_MAX);
}

static int compare_server_entries(const void *a, const void *b)
{
    const struct server_entry *x = a, *y = b;

    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static void read_peer_state(
    const struct upstream_zone_entry *entry, struct upstream_numbers *numbers)
{
    const struct peer_state *state = &entry->state;
    uint32_t health = PEER_LOAD(state->health);

    if (numbers->server->is_checked && health <= PEER_HEALTH_BAD)
        numbers->health = (enum peer_health)health;
    numbers->fails = PEER_LOAD(state->fails);
    numbers->sessions = PEER_LOAD(state->sessions);
    numbers->sent = PEER_LOAD(state->sent);
    numbers->received = PEER_LOAD(state->received);
    numbers->failures = PEER_LOAD(state->failures);
    numbers->disabled = PEER_LOAD(state->disabled);
    for (unsigned i = 0; i < PEER_TROUBLES; i++)
        numbers->troubles[i] = PEER_LOAD(state->troubles[i]);
    for (unsigned i = 0; i < 3; i++)
        numbers->times[i] = PEER_LOAD(state->times[i]);
}

static void read_peer(const struct reading *reading, const struct server_entry *found,
    struct upstream_numbers *numbers)
{
    const struct upstream_server *server = found->server;
    const struct upstream_zone_entry *entry;
    uint64_t since_ms;

    *numbers = (struct upstream_numbers) { .server = server };
    if (found->entry != UINT32_MAX) {
        entry = &reading->entries[found->entry];
        if (!copy_peer_address(server, entry, numbers->address))
            numbers->address[0] = '\0'; /* changed meanwhile */
        numbers->is_used = true;
        numbers->conns =
            (uint32_t)((uint64_t)sum_of_entry(reading->upstream->zone, found->entry) & UINT32_MAX);
        numbers->failed = peer_state_has_failed(&entry->state, server, reading->now_ms);
        read_peer_state(entry, numbers);
    } else if (server->target != NULL) {
        copy_peer_address(server, NULL, numbers->address);
    }
    numbers->said = upstream_operator_said(reading->upstream->zone,
        &(struct upstream_place) { reading->upstream->name, server->name, numbers->address },
        &since_ms);
}

/* Calls `each` with what is found; -1 without memory. */
static int read_numbers(struct reading *reading, const struct upstream_zone_header *header,
    void (*each)(void *arg, const struct upstream_numbers *numbers), void *arg)
{
    uint32_t server_n = reading->upstream->server_n;

    reading->servers = calloc(server_n + 1, sizeof(*reading->servers));
    reading->found = malloc((reading->zone->n + server_n + 1) * sizeof(*reading->found));
    if (reading->servers == NULL || reading->found == NULL)
        return -1;
    key_servers(reading, header);
    for (uint32_t i = 0; i < server_n; i++)
        if (i == 0 || reading->servers[i].key != reading->servers[i - 1].key)
            find_entries(reading, &reading->servers[i]);
    assert(reading->n <= reading->zone->n + server_n);
    qsort(reading->found, reading->n, sizeof(*reading->found), compare_server_entries);
    for (uint32_t i = 0; i < reading->n; i++) {
        struct upstream_numbers numbers;

        read_peer(reading, &reading->found[i], &numbers);
        each(arg, &numbers);
    }
    return 0;
}

int upstream_status_read(const struct upstream *upstream, uint64_t now_ms,
    void (*each)(void *arg, const struct upstream_numbers *numbers), void *arg)
{
    struct upstream_zone *zone = upstream->zone;
    const char *base = zone != NULL ? zone_memory(zone->zone) : NULL;
    struct reading reading = { .upstream = upstream, .now_ms = now_ms };
    int status;

    if (base == NULL) {
        errno = ENOTSUP;
        return -1;
    }
    assert(zone_memory(zone->rows) != NULL);
    if (read_entries(zone) == -1)
        return -1;
    reading.zone = zone->reading;
    reading.entries = (const void *)(base + upstream_zone_layout(&zone->shape).entries);
    status = read_numbers(&reading, (const void *)base, each, arg);
    free(reading.servers);
    free(reading.found);
    return status;
}

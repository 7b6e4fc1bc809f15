/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the numbers of peers in a zone for the master, which takes no lock for that, and believes
 * nothing that workers can write. */
#include "upstream/zone_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A server by the key of its names. Of those that have one name together the first stands for
 * all. */
struct keyed_server {
    uint64_t key;
    const struct upstream_server *server;
    bool has_peer;
};

/* An entry of a server, by their places. */
struct server_entry {
    uint32_t server, entry;
};

/* A group that is read. */
struct reading {
    const struct upstream *upstream;
    const struct upstream_zone_entry *entries;
    uint32_t entry_n;
    struct keyed_server *servers; /* server_n of these */
    struct server_entry *found;
    uint32_t n;
    uint64_t now_ms;
};

/* Returns which server has the key; server_n: none. */
static uint32_t find_server(const struct reading *reading, uint64_t key)
{
    uint32_t i = 0;

    while (i < reading->upstream->server_n && reading->servers[i].key != key)
        i++;
    return i;
}

static void key_servers(struct reading *reading, const struct upstream_zone_header *header)
{
    const struct upstream *upstream = reading->upstream;
    const struct upstream_server *server;
    uint32_t n = 0;

    STAILQ_FOREACH (server, &upstream->servers, link) {
        assert(n < upstream->server_n);
        reading->servers[n++] = (struct keyed_server) {
            .key = upstream_zone_server_key(header, upstream->name, server->name),
            .server = server,
        };
    }
    assert(n == upstream->server_n);
}

/* Returns the sum of all rows for an entry. */
static int64_t sum_of(const struct reading *reading, uint32_t entry)
{
    const struct upstream_zone *zone = reading->upstream->zone;

    return shm_metrics_total(zone_memory(zone->rows), &zone->rows_shape, entry);
}

/* Copies the address of a peer; false where a worker has written what is none. */
static bool copy_address(const struct upstream_server *server,
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

/* Finds the entries of the group's servers that workers use. */
static void find_entries(struct reading *reading)
{
    for (uint32_t i = 0; i < reading->entry_n; i++) {
        uint32_t server = find_server(reading, ZONE_LOAD(reading->entries[i].server));
        char address[ADDRESS_TEXT];

        if (server == reading->upstream->server_n || upstream_zone_uses(sum_of(reading, i)) == 0 ||
            !copy_address(reading->servers[server].server, &reading->entries[i], address))
            continue;
        reading->servers[server].has_peer = true;
        reading->found[reading->n++] = (struct server_entry) { server, i };
    }
}

/* Adds the servers without an entry, each with one that is none. */
static void add_others(struct reading *reading)
{
    for (uint32_t i = 0; i < reading->upstream->server_n; i++)
        if (!reading->servers[i].has_peer && find_server(reading, reading->servers[i].key) == i)
            reading->found[reading->n++] = (struct server_entry) { i, UINT32_MAX };
}

static int compare_places(const void *a, const void *b)
{
    const struct server_entry *x = a, *y = b;

    if (x->server != y->server)
        return x->server < y->server ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static void read_state(const struct upstream_zone_entry *entry, struct upstream_numbers *numbers)
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
    for (unsigned i = 0; i < 3; i++)
        numbers->times[i] = PEER_LOAD(state->times[i]);
}

static void read_peer(const struct reading *reading, const struct server_entry *found,
    struct upstream_numbers *numbers)
{
    const struct upstream_server *server = reading->servers[found->server].server;
    const struct upstream_zone_entry *entry;
    uint64_t since_ms;

    *numbers = (struct upstream_numbers) { .server = server };
    if (found->entry != UINT32_MAX) {
        entry = &reading->entries[found->entry];
        if (!copy_address(server, entry, numbers->address))
            numbers->address[0] = '\0'; /* changed meanwhile */
        numbers->is_used = true;
        numbers->conns = (uint32_t)((uint64_t)sum_of(reading, found->entry) & UINT32_MAX);
        numbers->failed = peer_state_has_failed(&entry->state, server, reading->now_ms);
        read_state(entry, numbers);
    } else if (server->target != NULL) {
        copy_address(server, NULL, numbers->address);
    }
    numbers->said = upstream_operator_said(reading->upstream->zone,
        &(struct upstream_place) { reading->upstream->name, server->name, numbers->address },
        &since_ms);
}

/* Calls `each` with what is found; -1 without memory. */
static int read_group(struct reading *reading, const struct upstream_zone_header *header,
    void (*each)(void *arg, const struct upstream_numbers *numbers), void *arg)
{
    size_t server_n = reading->upstream->server_n;

    reading->servers = calloc(server_n + 1, sizeof(*reading->servers));
    reading->found = malloc((reading->entry_n + server_n + 1) * sizeof(*reading->found));
    if (reading->servers == NULL || reading->found == NULL)
        return -1;
    key_servers(reading, header);
    find_entries(reading);
    add_others(reading);
    assert(reading->n <= reading->entry_n + server_n);
    qsort(reading->found, reading->n, sizeof(*reading->found), compare_places);
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
    const struct upstream_zone *zone = upstream->zone;
    const char *base = zone != NULL ? zone_memory(zone->zone) : NULL;
    struct reading reading = { .upstream = upstream, .now_ms = now_ms };
    struct upstream_zone_layout l;
    int status;

    if (base == NULL) {
        errno = ENOTSUP;
        return -1;
    }
    assert(zone_memory(zone->rows) != NULL);
    l = upstream_zone_layout(&zone->shape);
    reading.entries = (const void *)(base + l.entries);
    reading.entry_n = l.n;
    status = read_group(&reading, (const void *)base, each, arg);
    free(reading.servers);
    free(reading.found);
    return status;
}

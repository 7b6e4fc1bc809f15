/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and opens the zones of groups, with the operator's words in the header. */
#include "shm/siphash.h"
#include "upstream/zone_private.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The layout version of the zone's content. */
#define ZONE_VERSION 1
/* Bits of an operator's word for the state. */
#define STATE_BITS 2
#define STATE_MASK 3u

static_assert(UPSTREAM_ZONE_ENTRIES < UINT16_MAX, "struct upstream_zone_listed has room");
static_assert(sizeof(struct upstream_zone_entry) == UPSTREAM_ZONE_UNIT, "the manual says so");
static_assert(UPSTREAM_DOWN <= STATE_MASK, "a word has room for the state");

struct upstream_zone_layout upstream_zone_layout(const struct upstream_zone_shape *shape)
{
    struct upstream_zone_layout l = { .n = UPSTREAM_ZONE_ENTRIES };

    if (shape->size / sizeof(struct upstream_zone_entry) < l.n)
        l.n = (uint32_t)(shape->size / sizeof(struct upstream_zone_entry));
    l.locks = segment_pages(
        sizeof(struct upstream_zone_header) + l.n * sizeof(struct upstream_zone_said));
    l.entries = l.locks + (UPSTREAM_ZONE_LOCKS + 1) * CACHE_LINE;
    l.size = l.entries + l.n * sizeof(struct upstream_zone_entry);
    assert(l.entries % CACHE_LINE == 0);
    return l;
}

static size_t zone_size(const void *shape)
{
    struct upstream_zone_layout l = upstream_zone_layout(shape);

    return l.n > 0 ? l.size : 0;
}

static int init_zone(void *memory, const void *shape)
{
    struct upstream_zone_header *header = memory;

    assert(header->magic == 0);
    arc4random_buf(header->seed, sizeof(header->seed));
    header->size = ((const struct upstream_zone_shape *)shape)->size;
    header->unit = sizeof(struct upstream_zone_entry);
    header->revision = UPSTREAM_ZONE_REVISION;
    header->magic = UPSTREAM_ZONE_MAGIC;
    return 0;
}

static bool is_zone(const void *memory, const void *shape)
{
    const struct upstream_zone_header *header = memory;

    return header->magic == UPSTREAM_ZONE_MAGIC && header->revision == UPSTREAM_ZONE_REVISION &&
           header->unit == sizeof(struct upstream_zone_entry) &&
           header->size == ((const struct upstream_zone_shape *)shape)->size;
}

/* Leaves only the header to the master, for every worker alike. */
static struct segment_part writable_part(const void *shape, uint32_t slot)
{
    struct upstream_zone_layout l = upstream_zone_layout(shape);

    (void)slot;
    return (struct segment_part) { .offset = l.locks, .size = segment_pages(l.size) - l.locks };
}

static void acquire_slot(void *memory, const void *shape, struct slot_id id)
{
    (void)shape;
    table_worker_begins(&((struct upstream_zone_header *)memory)->workers, id);
}

/* Frees the worker's locks. */
static void release_slot(void *memory, const void *shape, struct slot_id id)
{
    (void)shape;
    table_worker_ends(&((struct upstream_zone_header *)memory)->workers, id.slot);
}

const struct zone_kind upstream_zone_kind = {
    .name = "upstream",
    .size = zone_size,
    .init = init_zone,
    .is = is_zone,
    .writable = writable_part,
    .slot_acquired = acquire_slot,
    .slot_released = release_slot,
};

static struct zone *declare(struct zones *zones, struct arena *arena, const struct zone_kind *kind,
    const char *prefix, const char *name, const void *shape)
{
    char whole[ZONE_NAME_MAX + 1];
    int n = snprintf(whole, sizeof(whole), "%s:%s", prefix, name);

    if (n >= 0 && (size_t)n < sizeof(whole))
        return zone_declare(zones, arena, kind, whole, ZONE_VERSION, shape);
    errno = ENAMETOOLONG;
    return NULL;
}

struct upstream_zone *upstream_zone_declare(
    struct zones *zones, struct arena *arena, const char *name, uint64_t size)
{
    struct upstream_zone *zone = arena_alloc(arena, sizeof(*zone));
    struct upstream_zone_layout l;
    uint8_t *kinds;

    if (zone == NULL)
        return NULL;
    *zone = (struct upstream_zone) { .name = name, .shape = { .size = size } };
    l = upstream_zone_layout(&zone->shape);
    if (l.n == 0 || name[0] == '\0') {
        errno = l.n == 0 ? EOVERFLOW : EINVAL;
        return NULL;
    }
    kinds = arena_alloc(arena, l.n);
    if (kinds == NULL)
        return NULL;
    memset(kinds, SHM_GAUGE, l.n);
    zone->rows_shape = (struct shm_metrics_shape) { .n = l.n, .kinds = kinds };
    zone->zone = declare(zones, arena, &upstream_zone_kind, "upstream", name, &zone->shape);
    if (zone->zone != NULL)
        zone->rows =
            declare(zones, arena, &shm_metrics_kind, "upstream_rows", name, &zone->rows_shape);
    return zone->rows != NULL ? zone : NULL;
}

/* Releases what the worker notes of entries. */
static void release_notes(struct upstream_zone *zone, const struct memory *memory)
{
    memory_release(memory, zone->listed);
    memory_release(memory, zone->unused);
    zone->listed = NULL;
    zone->unused = NULL;
}

int upstream_zone_open(struct upstream_zone *zone, const struct memory *memory, struct slot_id id)
{
    struct upstream_zone_layout l = upstream_zone_layout(&zone->shape);
    char *base = zone_memory(zone->zone);

    assert(zone->header == NULL && slot_id_is_valid(id));
    assert(base != NULL && zone_memory(zone->rows) != NULL);
    zone->listed = memory_alloc(memory, l.n * sizeof(*zone->listed));
    zone->unused = memory_alloc(memory, l.n * sizeof(*zone->unused));
    if (zone->listed == NULL || zone->unused == NULL) {
        release_notes(zone, memory);
        return -1;
    }
    zone->unused_n = 0;
    zone->full_ms = UINT64_MAX;
    memset(zone->listed, 0, l.n * sizeof(*zone->listed));
    zone->header = (void *)base;
    zone->entries = (void *)(base + l.entries);
    zone->n = l.n;
    zone->metrics = zone_memory(zone->rows);
    zone->row = shm_metrics_row(zone->metrics, &zone->rows_shape, id.slot);
    zone->table = (struct table) {
        .shard_n = UPSTREAM_ZONE_LOCKS + 1,
        .shards = base + l.locks,
        .locker = { .id = id, .released = zone->header->workers.released },
    };
    return 0;
}

void upstream_zone_close(struct upstream_zone *zone, const struct memory *memory)
{
    if (zone->header == NULL)
        return;
    for (uint32_t i = 0; i < zone->n; i++)
        assert(!zone->listed[i].is_listed);
    release_notes(zone, memory);
    zone->header = NULL;
}

uint64_t upstream_zone_hash(
    const struct upstream_zone_header *header, unsigned seed, const char *text)
{
    assert(seed < 2);
    return siphash(header->seed[seed], text, strlen(text));
}

uint64_t upstream_zone_server_key(
    const struct upstream_zone_header *header, const char *upstream, const char *server)
{
    const uint64_t parts[] = { upstream_zone_hash(header, 0, upstream),
        upstream_zone_hash(header, 0, server) };
    uint64_t key = siphash(header->seed[0], parts, sizeof(parts));

    return key != 0 ? key : 1;
}

uint32_t upstream_zone_lock_of(const struct upstream_zone *zone, const char *upstream)
{
    return (uint32_t)(upstream_zone_hash(zone->header, 1, upstream) % UPSTREAM_ZONE_LOCKS);
}

/* A lock left by its holder, or taken from the holder, guards nothing to repair. */
void upstream_zone_lock(struct upstream_zone *zone, uint32_t lock, struct zone_hold *hold)
{
    assert(hold->lock == NULL);
    zone_lock(&zone->table.locker, table_lock_of(&zone->table, lock), hold);
}

uint32_t upstream_operators_version(const struct upstream_zone *zone)
{
    return ZONE_LOAD(zone->header->version);
}

/* Returns the place of a server; UINT32_MAX: the operator said nothing. */
static uint32_t find_said(const struct upstream_zone_header *header, uint32_t n, uint64_t server)
{
    for (uint32_t i = 0; i < n && ZONE_LOAD(header->said[i].server) != 0; i++)
        if (ZONE_LOAD(header->said[i].server) == server)
            return i;
    return UINT32_MAX;
}

static enum upstream_operator state_of_word(uint64_t word)
{
    return (enum upstream_operator)(word & STATE_MASK);
}

/* Returns the word about a server's name or address; 0: none. */
static uint64_t word_about(
    const struct upstream_zone *zone, const char *upstream, const char *server)
{
    const struct upstream_zone_header *header = zone_memory(zone->zone);
    uint64_t key = upstream_zone_server_key(header, upstream, server), word;
    uint32_t at = find_said(header, upstream_zone_layout(&zone->shape).n, key);

    if (at == UINT32_MAX)
        return 0;
    word = ZONE_LOAD(header->said[at].word);
    /* by now the place may belong to a different server */
    return ZONE_LOAD(header->said[at].server) == key ? word : 0;
}

enum upstream_operator upstream_operator_said(
    const struct upstream_zone *zone, const struct upstream_place *place, uint64_t *since_ms)
{
    uint64_t of_server, of_address;

    assert(place->upstream != NULL && place->server != NULL && place->address != NULL);
    of_server = word_about(zone, place->upstream, place->server);
    of_address = word_about(zone, place->upstream, place->address);
    *since_ms = (of_server > of_address ? of_server : of_address) >> STATE_BITS;
    return state_of_word(state_of_word(of_address) != UPSTREAM_AUTO ? of_address : of_server);
}

int upstream_operator_set(
    const struct upstream *upstream, const char *server, enum upstream_operator to, uint64_t now_ms)
{
    const struct upstream_zone *zone = upstream->zone;
    struct upstream_zone_header *header;
    struct upstream_zone_said *said;
    uint32_t n, at;
    uint64_t key;

    assert(to <= UPSTREAM_DOWN);
    header = zone != NULL ? zone_memory(zone->zone) : NULL;
    if (header == NULL) {
        errno = ENOTSUP;
        return -1;
    }
    n = upstream_zone_layout(&zone->shape).n;
    key = upstream_zone_server_key(header, upstream->name, server);
    at = find_said(header, n, key);
    if (at == UINT32_MAX) /* a place in use by no server */
        for (at = 0; at < n; at++)
            if (ZONE_LOAD(header->said[at].server) == 0 ||
                state_of_word(ZONE_LOAD(header->said[at].word)) == UPSTREAM_AUTO)
                break;
    if (at == n) {
        errno = ENOSPC;
        return -1;
    }
    said = &header->said[at];
    ZONE_STORE(said->server, key);
    ZONE_STORE(said->word, now_ms << STATE_BITS | to);
    ZONE_STORE(header->version, ZONE_LOAD(header->version) + 1);
    return 0;
}

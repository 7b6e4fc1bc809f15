/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds and makes the entries of peers, under the table's lock; a call that loses the lock begins
 * again. A worker notes the use of an entry in the worker's row before a read of the entry's key,
 * so that no worker gives the entry up meanwhile. */

#include "upstream/zone_entry.h"

#include "shm/siphash.h"
#include "upstream/zone_private.h"

#include <stdlib.h>
#include <string.h>

/* Limit of tries of a call whose lock is taken away. */
#define TRIES 8
/* The key of an entry in the making. */
#define KEY_MADE 1

struct entry_key {
    uint64_t words[2];
};

/* Returns the key of a peer after `before` equal peers in its list. */
static struct entry_key key_of_peer(
    const struct upstream_zone *zone, const struct upstream_place *place, uint64_t before)
{
    struct entry_key key;

    for (unsigned i = 0; i < 2; i++) {
        const uint64_t parts[] = {
            upstream_zone_hash(zone->header, i, place->upstream),
            upstream_zone_hash(zone->header, i, place->server),
            upstream_zone_hash(zone->header, i, place->address),
            before,
        };

        key.words[i] = siphash(zone->header->seed[i], parts, sizeof(parts));
    }
    if (key.words[0] <= KEY_MADE)
        key.words[0] += KEY_MADE + 1;
    return key;
}

static bool has_key(const struct upstream_zone_entry *entry, const struct entry_key *key)
{
    return ZONE_LOAD(entry->key[0]) == key->words[0] && ZONE_LOAD(entry->key[1]) == key->words[1];
}

static void use_entry(struct upstream_zone *zone, uint32_t i, int64_t by)
{
    assert(i < zone->n);
    shm_metric_add(&zone->row[i], by * UPSTREAM_ZONE_USE);
    atomic_thread_fence(memory_order_seq_cst);
}

static uint32_t uses_of(const struct upstream_zone *zone, uint32_t i)
{
    return upstream_zone_uses(shm_metrics_total(zone->metrics, &zone->rows_shape, i));
}

/* Whether any worker uses the entry. Private memory tells of this worker's use. */
static bool is_entry_used(const struct upstream_zone *zone, uint32_t i)
{
    return zone->listed[i].is_listed || upstream_zone_uses(PEER_LOAD(zone->row[i])) > 0 ||
           uses_of(zone, i) > 0;
}

/* Finds the entry of the key: true; else *free is a never used entry, or UINT32_MAX. */
static bool find_peer_entry(
    struct upstream_zone *zone, const struct entry_key *key, uint32_t *found, uint32_t *free)
{
    uint32_t at = (uint32_t)(key->words[0] % zone->n);

    assert(zone->n > 0);
    *free = UINT32_MAX;
    for (uint32_t i = 0; i < zone->n; i++, at = at + 1 < zone->n ? at + 1 : 0) {
        const struct upstream_zone_entry *entry = &zone->entries[at];

        *found = at;
        zone->looked_at++;
        if (has_key(entry, key))
            return true;
        if (ZONE_LOAD(entry->key[0]) == 0 && !is_entry_used(zone, at)) {
            *free = at;
            return false;
        }
    }
    return false;
}

/* Orders entries by the time of use, the oldest last. */
static int compare_unused(const void *a, const void *b)
{
    const struct upstream_zone_unused *x = a, *y = b;

    if (x->used_ms != y->used_ms)
        return x->used_ms > y->used_ms ? -1 : 1;
    return x->entry > y->entry ? -1 : x->entry < y->entry;
}

/* Takes a noted entry, unused ever since; UINT32_MAX: none is left. */
static uint32_t take_unused(struct upstream_zone *zone)
{
    while (zone->unused_n > 0) {
        const struct upstream_zone_unused *unused = &zone->unused[--zone->unused_n];

        assert(unused->entry < zone->n);
        if (ZONE_LOAD(zone->entries[unused->entry].used_ms) == unused->used_ms &&
            !is_entry_used(zone, unused->entry))
            return unused->entry;
    }
    return UINT32_MAX;
}

/* Returns the entry unused for the longest time, searched once a turn; UINT32_MAX: none. */
static uint32_t find_unused(struct upstream_zone *zone, uint64_t now_ms)
{
    uint32_t found = take_unused(zone);

    if (found != UINT32_MAX || zone->full_ms == now_ms)
        return found;
    zone->unused_n = 0;
    zone->looked_at += zone->n;
    for (uint32_t i = 0; i < zone->n; i++) /* in a single pass, for many servers */
        if (!is_entry_used(zone, i))
            zone->unused[zone->unused_n++] =
                (struct upstream_zone_unused) { ZONE_LOAD(zone->entries[i].used_ms), i };
    qsort(zone->unused, zone->unused_n, sizeof(*zone->unused), compare_unused);
    found = take_unused(zone);
    if (found == UINT32_MAX)
        zone->full_ms = now_ms;
    return found;
}

/* Gives the peer the entry, zeroed; false after a competitor, or a loss of the lock. */
static bool make_entry(struct upstream_zone *zone, const struct upstream_place *place,
    const struct entry_key *key, uint32_t i, const struct zone_hold *hold)
{
    struct upstream_zone_entry *entry = &zone->entries[i];

    assert(i < zone->n && key->words[0] > KEY_MADE);
    use_entry(zone, i, 1);
    if (uses_of(zone, i) != 1 || !zone_lock_holds(hold)) {
        use_entry(zone, i, -1);
        return false;
    }
    ZONE_STORE(entry->key[0], KEY_MADE);
    memset((void *)&entry->state, 0, sizeof(entry->state));
    memset(entry->address, 0, sizeof(entry->address));
    memcpy(entry->address, place->address, strnlen(place->address, sizeof(entry->address) - 1));
    ZONE_STORE(
        entry->server, upstream_zone_server_key(zone->header, place->upstream, place->server));
    ZONE_STORE(entry->key[1], key->words[1]);
    ZONE_STORE(entry->key[0], key->words[0]);
    return true;
}

/* A joined entry, and how many equal peers precede the peer. */
struct joined {
    uint32_t entry, before;
    uint32_t first; /* entry of the first like it */
};

/* Returns the next number of equal peers after `before`, without the listed peers. */
static uint32_t pass_listed(struct upstream_zone *zone, uint32_t first, uint32_t before)
{
    struct upstream_zone_listed *listed = &zone->listed[first];

    assert(listed->next > 0);
    if (before == 0)
        return listed->next;
    if (listed->next == before)
        listed->next++;
    return before + 1;
}

/* Joins the peer's entry, with the table locked: OK; NONE: the zone is full; FAILED. */
static enum table_step join_locked(struct upstream_zone *zone, const struct upstream_place *place,
    uint64_t now_ms, const struct zone_hold *hold, struct joined *joined)
{
    for (uint32_t before = 0; before < zone->n;) {
        struct entry_key key = key_of_peer(zone, place, before);
        uint32_t free;
        bool found = find_peer_entry(zone, &key, &joined->entry, &free);

        if (before == 0)
            joined->first = joined->entry;
        joined->before = before;
        if (found && zone->listed[joined->entry].is_listed) {
            before =
                pass_listed(zone, joined->first, before); /* an equal peer before has the entry */
            continue;
        }
        if (found) {
            use_entry(zone, joined->entry, 1);
            if (has_key(&zone->entries[joined->entry], &key))
                return TABLE_OK;
            use_entry(zone, joined->entry, -1);
            return TABLE_FAILED;
        }
        joined->entry = free != UINT32_MAX ? free : find_unused(zone, now_ms);
        if (joined->entry == UINT32_MAX)
            return TABLE_NONE;
        if (before == 0)
            joined->first = joined->entry;
        return make_entry(zone, place, &key, joined->entry, hold) ? TABLE_OK : TABLE_FAILED;
    }
    return TABLE_NONE;
}

static void list_entry(struct upstream_zone *zone, const struct joined *joined)
{
    struct upstream_zone_listed *listed = &zone->listed[joined->entry];

    assert(!listed->is_listed && joined->before < zone->n);
    assert((joined->entry == joined->first) == (joined->before == 0));
    *listed = (struct upstream_zone_listed) {
        .is_listed = true,
        .before = (uint16_t)joined->before,
        .first = (uint16_t)joined->first,
        .next = 1,
    };
    if (joined->before > 0)
        pass_listed(zone, joined->first, joined->before);
}

struct peer_state *upstream_zone_join(struct upstream_zone *zone,
    const struct upstream_place *place, uint64_t now_ms, uint32_t *entry)
{
    struct joined joined = { .entry = UINT32_MAX, .first = UINT32_MAX };

    assert(zone->header != NULL);
    for (int tries = 0; tries < TRIES; tries++) {
        struct zone_hold hold = { .lock = NULL };
        enum table_step joining;
        bool held;

        upstream_zone_lock(zone, UPSTREAM_ZONE_TABLE, &hold);
        joining = join_locked(zone, place, now_ms, &hold, &joined);
        held = zone_lock_release(&hold);
        if (held && joining == TABLE_NONE)
            return NULL;
        if (held && joining == TABLE_OK) {
            list_entry(zone, &joined);
            *entry = joined.entry;
            ZONE_STORE(zone->entries[*entry].used_ms, now_ms);
            return &zone->entries[*entry].state;
        }
        if (joining == TABLE_OK)
            use_entry(zone, joined.entry, -1);
    }
    return NULL;
}

void upstream_zone_unlist(struct upstream_zone *zone, uint32_t entry)
{
    struct upstream_zone_listed *listed = &zone->listed[entry], *first;

    assert(entry < zone->n && listed->is_listed && listed->first < zone->n);
    listed->is_listed = false;
    first = &zone->listed[listed->first];
    if (listed->before > 0 && first->next > listed->before)
        first->next = listed->before;
}

void upstream_zone_leave(struct upstream_zone *zone, uint32_t entry)
{
    assert(zone->header != NULL);
    use_entry(zone, entry, -1);
    zone->full_ms = UINT64_MAX;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Hash tables with open addressing. Whole strings are hashed and compared eight bytes at a time;
 * ends and beginnings a byte at a time, in one walk: many dots in a name cost no more than
 * bytes. */
#include "text/map_table.h"

#include "base/compiler.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_LEAST 16
#define ENTRIES_MOST (UINT32_MAX / 4)

#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (uint8_t)(c))

/* Lowers capital letters of ASCII, in all eight bytes. */
static inline uint64_t fold_word(uint64_t word)
{
    uint64_t low = word & EACH_BYTE(0x7f);
    uint64_t from_a = low + EACH_BYTE(0x80 - 'A');
    uint64_t behind_z = low + EACH_BYTE(0x7f - 'Z');

    return word | (((from_a ^ behind_z) & ~word & EACH_BYTE(0x80)) >> 2);
}

/* Returns up to eight bytes as a number, padded with 0. */
static inline uint64_t load_word(const char *p, size_t n, bool fold)
{
    uint64_t word = 0;

    if (likely(n >= sizeof(word)))
        memcpy(&word, p, sizeof(word));
    else
        for (size_t i = 0; i < n; i++)
            word |= (uint64_t)(uint8_t)p[i] << 8 * i;
    return fold ? fold_word(word) : word;
}

static inline uint8_t fold_byte(char c)
{
    return (uint8_t)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

static inline bool is_equal(const char *a, const char *b, size_t n, bool fold)
{
    for (; n > 8; a += 8, b += 8, n -= 8)
        if (load_word(a, 8, fold) != load_word(b, 8, fold))
            return false;
    return load_word(a, n, fold) == load_word(b, n, fold);
}

static inline uint32_t hash_whole(const char *p, size_t n, bool fold)
{
    uint64_t hash = n;

    for (; n > 8; p += 8, n -= 8) {
        hash = (hash ^ load_word(p, 8, fold)) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    hash = (hash ^ load_word(p, n, fold)) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash ^ hash >> 32);
}

#define HASH_BEGIN UINT32_C(2166136261)

static inline uint32_t hash_byte(uint32_t hash, char c)
{
    return (hash ^ fold_byte(c)) * UINT32_C(16777619);
}

/* The last bits of a hash that was made a byte at a time depend on few bits of the bytes. */
static inline uint32_t hash_end(uint32_t hash)
{
    return hash ^ hash >> 15;
}

static uint32_t hash_map_key(const struct map_table *table, const char *key, size_t n)
{
    uint32_t hash = HASH_BEGIN;

    if (table->kind == MAP_EXACT)
        return hash_whole(key, n, true);
    if (table->kind == MAP_TEXT)
        return hash_whole(key, n, false);
    for (size_t i = 0; i < n; i++)
        hash = hash_byte(hash, table->kind == MAP_BEGIN ? key[i] : key[n - 1 - i]);
    return hash_end(hash);
}

static inline bool is_entry(
    const struct map_table *table, const struct map_entry *entry, const char *key, size_t n)
{
    return entry->n == n && (table->kind == MAP_TEXT ? memcmp(entry->key, key, n) == 0
                                                     : is_equal(entry->key, key, n, true));
}

/* Returns the slot of the key, or the free slot for the key. */
static uint32_t *find_slot(const struct map_table *table, const char *key, size_t n, uint32_t hash)
{
    for (uint32_t i = hash & table->mask;; i = (i + 1) & table->mask) {
        const struct map_entry *entry;

        if (table->slots[i] == 0)
            return &table->slots[i];
        assert(table->slots[i] <= table->n);
        entry = &table->entries[table->slots[i] - 1];
        if (entry->hash == hash && is_entry(table, entry, key, n))
            return &table->slots[i];
    }
}

static int grow_slots(struct map_table *table)
{
    uint32_t n = table->slots == NULL ? SLOTS_LEAST : (table->mask + 1) * 2;
    uint32_t *slots = calloc(n, sizeof(*slots));

    assert((n & (n - 1)) == 0 && n > table->n);
    if (slots == NULL)
        return -1;
    free(table->slots);
    table->slots = slots;
    table->mask = n - 1;
    for (uint32_t i = 0; i < table->n; i++) {
        const struct map_entry *entry = &table->entries[i];

        *find_slot(table, entry->key, entry->n, entry->hash) = i + 1;
    }
    return 0;
}

static int grow_entries(struct map_table *table)
{
    uint32_t most = table->most == 0 ? SLOTS_LEAST / 2 : table->most * 2;
    struct map_entry *entries;

    if (most > ENTRIES_MOST)
        return -1;
    entries = reallocarray(table->entries, most, sizeof(*entries));
    if (entries == NULL)
        return -1;
    table->entries = entries;
    table->most = most;
    return 0;
}

int map_table_add(struct map_table *table, const char *key, size_t n, uint32_t text)
{
    uint32_t hash = hash_map_key(table, key, n), *slot;

    assert(text != MAP_NONE && table->n <= table->most);
    if (n > UINT32_MAX || (table->n == table->most && grow_entries(table) == -1))
        return -1;
    if ((table->slots == NULL || table->n * 2 > table->mask) && grow_slots(table) == -1)
        return -1;
    slot = find_slot(table, key, n, hash);
    if (*slot != 0)
        return 0;
    table->entries[table->n++] = (struct map_entry) { key, (uint32_t)n, hash, text };
    *slot = table->n;
    if (n > table->longest)
        table->longest = (uint32_t)n;
    return 1;
}

int map_table_finish(struct map_table *table, struct arena *arena)
{
    struct map_table kept = *table;
    size_t entry_size = table->n * sizeof(*kept.entries);
    size_t slot_size = ((size_t)table->mask + 1) * sizeof(*kept.slots);

    if (table->n == 0) {
        map_table_discard(table);
        return 0;
    }
    assert(table->slots != NULL && table->n <= table->mask);
    kept.entries = arena_alloc(arena, entry_size);
    kept.slots = arena_alloc(arena, slot_size);
    kept.most = table->n;
    if (kept.entries != NULL && kept.slots != NULL) {
        memcpy(kept.entries, table->entries, entry_size);
        memcpy(kept.slots, table->slots, slot_size);
    }
    map_table_discard(table);
    if (kept.entries == NULL || kept.slots == NULL)
        return -1;
    *table = kept;
    return 0;
}

void map_table_discard(struct map_table *table)
{
    free(table->entries);
    free(table->slots);
    *table = (struct map_table) { .kind = table->kind };
}

static uint32_t look_up(const struct map_table *table, const char *p, size_t n, uint32_t hash)
{
    const uint32_t *slot = find_slot(table, p, n, hash);

    assert(table->n <= table->mask); /* a free slot ends each search */
    return *slot == 0 ? MAP_NONE : table->entries[*slot - 1].text;
}

/* Walks from either end of the name; the last dot with a fitting key has the longest key. */
static uint32_t find_longest(const struct map_table *table, const char *p, size_t n)
{
    bool ends = table->kind == MAP_END;
    uint32_t hash = HASH_BEGIN, found = MAP_NONE;

    for (size_t i = 1; i <= n && i <= table->longest; i++) {
        char c = ends ? p[n - i] : p[i - 1];

        hash = hash_byte(hash, c);
        if (c == '.') {
            uint32_t text = look_up(table, ends ? p + n - i : p, i, hash_end(hash));

            found = text != MAP_NONE ? text : found;
        }
    }
    return found;
}

uint32_t map_table_find(const struct map_table *table, const char *p, size_t n)
{
    if (table->n == 0)
        return MAP_NONE;
    assert(table->slots != NULL);
    if (table->kind == MAP_END || table->kind == MAP_BEGIN)
        return find_longest(table, p, n);
    return n > table->longest ? MAP_NONE : look_up(table, p, n, hash_map_key(table, p, n));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of strings, found by a hash of all bytes: whole strings, ends of names with a dot in
 * front, and beginnings of names with a dot at the end, in letters of either case; and texts with
 * case. settings/ adds the keys, which are lent, and nothing changes a table afterwards. */
#pragma once

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

enum map_table_kind {
    MAP_EXACT, /* the whole string */
    MAP_END,   /* ".example.com": the end of a name */
    MAP_BEGIN, /* "www.example.": the beginning of a name */
    MAP_TEXT,  /* the whole string, where "a" is not "A" */
};

/* No entry, and no text. */
#define MAP_NONE UINT32_MAX

struct map_entry {
    const char *key;
    uint32_t n;
    uint32_t hash;
    uint32_t text; /* the caller's number */
};

struct map_table {
    enum map_table_kind kind;
    uint32_t n;    /* entries */
    uint32_t most; /* entries that there is room for */
    uint32_t mask; /* slots less one, or 0 without slots */
    struct map_entry *entries;
    uint32_t *slots;  /* an entry's number + 1; 0: free */
    uint32_t longest; /* bytes of the longest key */
};

/* Adds a key: 1; 0 for a present key; -1 without memory, the C library's until the finish. */
int map_table_add(struct map_table *table, const char *key, size_t n, uint32_t text);
/* Moves the table to the arena, -1 without memory, and frees the C library's memory. */
int map_table_finish(struct map_table *table, struct arena *arena);
/* Gives back the memory of an unfinished table. */
void map_table_discard(struct map_table *table);
/* Returns the text of the longest fitting key, or MAP_NONE. */
uint32_t map_table_find(const struct map_table *table, const char *p, size_t n);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of strings, compared without regard to case: whole strings, ends of names with a dot in
 * front, and beginnings of names with a dot at the end; and tables of texts, compared with case. A
 * string is found by a hash of all bytes.
 *
 * Only data: settings/ adds the keys while reading the configuration, and nothing changes a
 * table afterwards. Keys are lent and live as long as the table. */
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

/* Adds a key: 1; 0 where it is there already; -1 without memory. Memory is the C library's until
 * the table is finished. */
int map_table_add(struct map_table *table, const char *key, size_t n, uint32_t text);
/* Moves the table to the arena; -1 without memory. In either case the C library's memory is given
 * back. */
int map_table_finish(struct map_table *table, struct arena *arena);
/* Gives back the memory of an unfinished table. */
void map_table_discard(struct map_table *table);

/* Returns the text of the longest fitting key, or MAP_NONE. */
uint32_t map_table_find(const struct map_table *table, const char *p, size_t n);

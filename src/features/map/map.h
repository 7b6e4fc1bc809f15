/* SPDX-License-Identifier: BSD-2-Clause */
/* `map`: a variable whose value depends on a text, looked up among whole strings, then among ends
 * and beginnings of names, the longest first, then matched with regular expressions in order.
 * Nothing changes a map in use. */
#pragma once

#include "text/map_table.h"
#include "text/regex.h"
#include "text/template.h"

#include <stdbool.h>

struct map_regex {
    const struct map_regex *next; /* in the order of the configuration */
    const struct regex *regex;
    const struct variable **named; /* variables of its named captures */
    uint32_t text;
};

struct map {
    const struct template *source;
    struct map_table exact, end, begin;
    const struct map_regex *regexes;
    const struct map_text *texts; /* by the numbers that the tables have */
    uint32_t otherwise;           /* the text of what nothing matches */
    bool hostnames;               /* a dot at the end of the text is left out */
};

/* Returns the number of the text that the tables have for a source, or MAP_NONE. */
uint32_t map_find(const struct map *map, const char *p, size_t n);
/* Looks a text up in the tables, then by the expressions, whose captures lie in the text and are
 * kept for the session. Without a match *text stays. -1 without memory. */
int map_look_up(
    const struct map *map, struct fb_conn *conn, const char *p, size_t n, uint32_t *text);
/* Works out the variable's value; its `arg` is the map. -1 without memory. */
int map_get(struct fb_conn *conn, const struct variable *variable, struct value *value);

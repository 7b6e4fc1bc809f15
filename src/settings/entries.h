/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks whose directives are data: the keys and values of a map, the networks of a geo. */
#pragma once

#include "settings/setting.h"
#include "text/map_table.h"
#include "text/template.h"

#include <stdbool.h>

/* A block that is read. */
struct entries {
    struct apply *apply;
    const struct conf_directive *directive; /* has the block */
    bool includes;                          /* `include` stands for what its files have */
    /* Called for each entry, which has no block. Reports all mistakes itself. */
    void (*each)(struct entries *entries, const struct conf_directive *entry);

    /* texts of values, each kept once */
    struct map_table numbers;
    struct map_text *texts;
    uint32_t text_n, text_most;

    unsigned depth; /* files being read: the trees of directives do not last */
    bool trim;      /* some were read */
    char *room;     /* for copies of words */
    size_t room_n;
};

/* Reads the block: environment variables of values are replaced. -1 after a report. */
int entries_read(struct entries *entries);
/* Whether the entry has n arguments; if not, after a report. */
bool entries_have(struct entries *entries, const struct conf_directive *entry, unsigned n);
/* Makes an arena for what lasts no longer than the reading; NULL after a report. */
struct arena *entries_arena(struct apply *apply);
/* Returns the text with the lifetime of the configuration. */
const char *entries_keep(struct entries *entries, const char *text, size_t n);
/* Returns the number of the word's text; MAP_NONE after a report. */
uint32_t entries_add_text(struct entries *entries, const struct conf_word *word, bool is_template);
/* Moves the texts to the configuration's memory; entries_discard() discards the texts. */
const struct map_text *entries_finish(struct entries *entries);
void entries_discard(struct entries *entries); /* once or more, last of all */

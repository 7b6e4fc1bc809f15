/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks blocks of data with included files, and keeps the texts of values, at the same cost for
 * each of 100,000 entries. */
#include "settings/entries.h"

#include "base/check.h"
#include "os/memory.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/template.h"

#include <stdlib.h>
#include <string.h>

#define TEXTS_LEAST 16
#define ROOM 2048 /* bytes for copies of words, taken at once */

static int read_entries(void *arg, struct conf_block *block);

struct arena *entries_arena(struct apply *apply)
{
    const struct memory *memory = apply->options->memory;

    return apply_taken(apply, arena_create_from(memory != NULL ? memory : &memory_plain));
}

/* Frees the trees of included files, which are far larger than the entries' texts. */
static void include_files(struct entries *entries, const struct conf_directive *entry)
{
    struct apply *apply = entries->apply;
    struct conf_source *source = &apply->cycle->source;
    struct arena *trees = source->trees, *own;
    const char *pattern;

    if (!entries_have(entries, entry, 1) ||
        (pattern = apply_conf_path(apply, entry->args[0].text)) == NULL ||
        (own = entries_arena(apply)) == NULL)
        return;
    source->trees = own;
    entries->depth++;
    entries->trim = true;
    conf_include(source, &entry->args[0], pattern, read_entries, entries);
    entries->depth--;
    source->trees = trees;
    arena_destroy(&own);
}

const char *entries_keep(struct entries *entries, const char *text, size_t n)
{
    char *copy;

    if (entries->depth == 0)
        return text;
    if (n >= entries->room_n) {
        entries->room_n = n < ROOM ? ROOM : n + 1;
        entries->room = apply_alloc(entries->apply, entries->room_n);
    }
    copy = entries->room;
    if (copy == NULL) {
        entries->room_n = 0;
        return NULL;
    }
    memcpy(copy, text, n);
    copy[n] = '\0';
    entries->room += n + 1;
    entries->room_n -= n + 1;
    return copy;
}

/* A use of a variable is remembered by its word. */
static const struct conf_word *keep_word(struct entries *entries, const struct conf_word *word)
{
    struct conf_word *copy;

    if (entries->depth == 0)
        return word;
    copy = apply_alloc(entries->apply, sizeof(*copy));
    if (copy == NULL)
        return NULL;
    *copy = *word;
    copy->written = NULL;
    copy->text = entries_keep(entries, word->text, strlen(word->text));
    return copy->text != NULL ? copy : NULL;
}

static void read_entry(struct entries *entries, const struct conf_directive *entry)
{
    struct apply *apply = entries->apply;
    const char *name = entries->directive->name.text;

    if (entry->block != NULL)
        report_error(apply->report, &entry->name,
            "unexpected \"{\" after \"%s\" in \"%s\" block, expecting a value and \";\"",
            entry->name.text, name);
    else if ((entry = substitution_apply(apply, entry)) == NULL)
        return;
    else if (entries->includes && strcmp(entry->name.text, "include") == 0)
        include_files(entries, entry);
    else
        entries->each(entries, entry);
}

static int read_entries(void *arg, struct conf_block *block)
{
    struct entries *entries = arg;
    unsigned errors = entries->apply->report->error_n;
    const struct conf_directive *entry;

    STAILQ_FOREACH (entry, &block->directives, link)
        read_entry(entries, entry);
    return entries->apply->report->error_n > errors ? -1 : 0;
}

int entries_read(struct entries *entries)
{
    return read_entries(entries, entries->directive->block);
}

bool entries_have(struct entries *entries, const struct conf_directive *entry, unsigned n)
{
    if (entry->arg_n == n)
        return true;
    report_error(entries->apply->report, entry->arg_n > n ? &entry->args[n] : &entry->name,
        "invalid number of the %s parameters: expected %u after \"%s\", found %u",
        entries->directive->name.text, n, entry->name.text, entry->arg_n);
    return false;
}

static int grow_texts(struct entries *entries)
{
    uint32_t most = entries->text_most == 0 ? TEXTS_LEAST : entries->text_most * 2;
    struct map_text *texts = NULL;

    if (most > entries->text_most && most < MAP_NONE / 2)
        texts = reallocarray(entries->texts, most, sizeof(*texts));
    if (texts == NULL)
        return -1;
    entries->texts = texts;
    entries->text_most = most;
    return 0;
}

uint32_t entries_add_text(struct entries *entries, const struct conf_word *word, bool is_template)
{
    struct map_text text = { .p = word->text, .n = (uint32_t)strlen(word->text) };
    bool is_own = word->plain != NULL; /* a word with equal text may have variables */
    uint32_t number = MAP_NONE;

    entries->numbers.kind = MAP_TEXT;
    if (!is_own)
        number = map_table_find(&entries->numbers, text.p, text.n);
    if (number != MAP_NONE)
        return number;
    if (is_template && strchr(word->text, '$') != NULL) {
        word = keep_word(entries, word);
        if (word == NULL)
            return MAP_NONE;
        text.p = word->text;
        text.template = template_of(entries->apply, word, word->text);
        if (text.template == NULL)
            return MAP_NONE;
    } else if ((text.p = entries_keep(entries, text.p, text.n)) == NULL) {
        return MAP_NONE;
    }
    number = entries->text_n;
    if ((number == entries->text_most && grow_texts(entries) == -1) ||
        (!is_own && map_table_add(&entries->numbers, text.p, text.n, number) == -1)) {
        report_error(entries->apply->report, NULL, "out of memory");
        return MAP_NONE;
    }
    entries->texts[entries->text_n++] = text;
    return number;
}

const struct map_text *entries_finish(struct entries *entries)
{
    size_t size = entries->text_n * sizeof(*entries->texts);
    struct map_text *texts = apply_alloc(entries->apply, size);

    if (texts != NULL && size > 0)
        memcpy(texts, entries->texts, size);
    entries_discard(entries);
    return texts;
}

void entries_discard(struct entries *entries)
{
    map_table_discard(&entries->numbers);
    free(entries->texts);
    entries->texts = NULL;
    entries->text_n = entries->text_most = 0;
    if (entries->trim)
        os_memory_trim();
}

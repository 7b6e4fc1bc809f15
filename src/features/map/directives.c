/* SPDX-License-Identifier: BSD-2-Clause */
/* `map`: reads the keys and values of a block, and makes the variable. */
#include "features/map/map.h"

#include "base/check.h"
#include "features/features.h"
#include "features/set/set.h"
#include "settings/entries.h"
#include "settings/set_value.h"
#include "settings/template.h"

#include <string.h>

struct map_reading {
    struct entries entries;
    struct map *map;
    bool names;       /* `hostnames` was read: keys may be masks */
    bool has_default; /* was written */
    bool is_volatile;
    const struct map_regex **last;
};

static struct map_reading *reading_of(struct entries *entries)
{
    return container_of(entries, struct map_reading, entries);
}

static void read_default(struct map_reading *reading, const struct conf_directive *entry)
{
    uint32_t text;

    if (reading->has_default) {
        report_error(reading->entries.apply->report, &entry->name,
            "duplicate default map parameter: there is a \"default\" already");
        return;
    }
    reading->has_default = true;
    text = entries_add_text(&reading->entries, &entry->args[0], true);
    if (text != MAP_NONE)
        reading->map->otherwise = text;
}

static void add_key(struct map_reading *reading, const struct conf_word *word,
    struct map_table *table, const char *key, size_t n, uint32_t text)
{
    struct conf_report *report = reading->entries.apply->report;

    key = entries_keep(&reading->entries, key, n);
    if (key == NULL)
        return;
    switch (map_table_add(table, key, n, text)) {
    case -1:
        report_error(report, NULL, "out of memory");
        break;
    case 0:
        report_error(report, word, "conflicting parameter \"%s\"", word->text);
        break;
    }
}

/* Whether a key with a mask is one: "*.", or ".*", with labels between dots. */
static bool is_mask(const char *key, size_t n)
{
    const char *star = memchr(key, '*', n);

    if (strstr(key, "..") != NULL || (n < 3 && star != NULL))
        return false;
    if (star == NULL)
        return true;
    if (star == key)
        return key[1] == '.' && strchr(star + 1, '*') == NULL;
    return star == key + n - 1 && star[-1] == '.' && key[0] != '.';
}

/* Adds a name, which may be a mask. */
static void add_name(
    struct map_reading *reading, const struct conf_word *word, const char *key, uint32_t text)
{
    struct map *map = reading->map;
    size_t n = strlen(key);
    bool is_plain = memchr(key, '*', n) == NULL && (key[0] != '.' || n == 1);

    if (!(is_plain ? strstr(key, "..") == NULL : is_mask(key, n)))
        report_error(reading->entries.apply->report, word,
            "invalid hostname or wildcard \"%s\": expected \"example.com\", \"*.example.com\", "
            "\".example.com\" or \"www.example.*\"",
            word->text);
    else if (is_plain)
        add_key(reading, word, &map->exact, key, n, text);
    else if (key[n - 1] == '*')
        add_key(reading, word, &map->begin, key, n - 1, text);
    else if (key[0] == '*')
        add_key(reading, word, &map->end, key + 1, n - 1, text);
    else if (map_table_find(&map->exact, key + 1, n - 1) != MAP_NONE)
        report_error(reading->entries.apply->report, word, "conflicting parameter \"%s\"", key);
    else {
        add_key(reading, word, &map->exact, key + 1, n - 1, text);
        add_key(reading, word, &map->end, key, n, text);
    }
}

/* Defines the variables of an expression's named captures; -1 after a report. */
static int define_named(struct apply *apply, const struct conf_word *word, struct map_regex *regex)
{
    unsigned n = regex_names(regex->regex);

    regex->named = apply_alloc(apply, n * sizeof(struct variable *));
    if (regex->named == NULL)
        return -1;
    for (unsigned i = 0; i < n; i++) {
        struct conf_word name = *word;

        name.text = arena_printf(apply->cycle->arena, "$%s", regex_name(regex->regex, i));
        if (name.text == NULL) {
            report_error(apply->report, NULL, "out of memory");
            return -1;
        }
        regex->named[i] = set_define(apply, &name, set_get_missing);
        if (regex->named[i] == NULL)
            return -1;
    }
    return 0;
}

static void add_regex(struct map_reading *reading, const struct conf_word *word, uint32_t text)
{
    struct apply *apply = reading->entries.apply;
    struct map_regex *regex = apply_alloc(apply, sizeof(*regex));
    char error[REGEX_ERROR_TEXT];

    if (regex == NULL)
        return;
    *regex = (struct map_regex) { .text = text };
    regex->regex = regex_compile(apply->cycle->arena, word->text + 1, error);
    if (regex->regex == NULL) {
        report_error(
            apply->report, word, "invalid regular expression \"%s\": %s", word->text, error);
        return;
    }
    if (define_named(apply, word, regex) == -1)
        return;
    *reading->last = regex;
    reading->last = &regex->next;
}

static void read_key(struct map_reading *reading, const struct conf_directive *entry)
{
    const struct conf_word *word = &entry->name;
    const char *key = word->text + (word->text[0] == '\\');
    uint32_t text = entries_add_text(&reading->entries, &entry->args[0], true);

    if (text == MAP_NONE)
        return;
    if (word->text[0] == '~')
        add_regex(reading, word, text);
    else if (reading->names)
        add_name(reading, word, key, text);
    else
        add_key(reading, word, &reading->map->exact, key, strlen(key), text);
}

/* Reads a word that stands alone: warns of a value, and does not look at the value, as nginx
 * does. */
static bool read_word(struct map_reading *reading, const struct conf_directive *entry)
{
    bool is_names = strcmp(entry->name.text, "hostnames") == 0;

    if (!is_names && strcmp(entry->name.text, "volatile") != 0)
        return false;
    if (entry->arg_n > 0)
        report_warn(reading->entries.apply->report, &entry->args[0],
            "\"%s\" takes no value: as a key it is written \"\\%s\"", entry->name.text,
            entry->name.text);
    if (is_names)
        reading->names = reading->map->hostnames = true;
    else
        reading->is_volatile = true;
    return true;
}

static void read_entry(struct entries *entries, const struct conf_directive *entry)
{
    struct map_reading *reading = reading_of(entries);

    if (read_word(reading, entry) || !entries_have(entries, entry, 1))
        return;
    if (strcmp(entry->name.text, "default") == 0)
        read_default(reading, entry);
    else
        read_key(reading, entry);
}

/* Moves the tables to the configuration's memory; -1 after a report. */
static int finish_tables(struct map_reading *reading)
{
    struct apply *apply = reading->entries.apply;
    struct map_table *tables[] = { &reading->map->exact, &reading->map->end, &reading->map->begin };
    int rc = 0;

    for (size_t i = 0; i < countof(tables); i++)
        if (map_table_finish(tables[i], apply->cycle->arena) == -1)
            rc = -1;
    reading->map->texts = entries_finish(&reading->entries);
    if (rc == -1)
        report_error(apply->report, NULL, "out of memory");
    return reading->map->texts == NULL ? -1 : rc;
}

/* The size of a table comes from the number of entries. */
static int map_set_hash_size(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    int64_t number;

    (void)field;
    return set_number(apply, directive, &number);
}

static int map_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    const struct conf_word nothing = { .text = "" };
    struct map *map = apply_alloc(apply, sizeof(*map));
    struct map_reading reading = {
        .entries = { .apply = apply, .directive = directive, .includes = true, .each = read_entry },
        .map = map,
    };
    struct variable *variable;
    int rc;

    (void)field;
    if (map == NULL)
        return -1;
    *map = (struct map) { .exact.kind = MAP_EXACT, .end.kind = MAP_END, .begin.kind = MAP_BEGIN };
    reading.last = &map->regexes;
    map->source = template_of(apply, &directive->args[0], directive->args[0].text);
    variable = template_define(apply, &directive->args[1]);
    map->otherwise = entries_add_text(&reading.entries, &nothing, false);
    rc = map->otherwise == MAP_NONE ? -1 : entries_read(&reading.entries);
    if (finish_tables(&reading) == -1 || rc == -1 || map->source == NULL || variable == NULL)
        return -1;
    variable->get = map_get;
    variable->of = map->source;
    variable->arg = map;
    variable->flags = VARIABLE_CHANGEABLE | (reading.is_volatile ? VARIABLE_VOLATILE : 0);
    return 0;
}

static const struct setting rows[] = {
    { "map", CONTEXT_STREAM, 2, 2, .set = map_set, .block = true, .repeats = true,
        .unset = "none" },
    { "map_hash_bucket_size", CONTEXT_STREAM, 1, 1, .set = map_set_hash_size,
        .greatest_value = INT32_MAX, .initial = "64" },
    { "map_hash_max_size", CONTEXT_STREAM, 1, 1, .set = map_set_hash_size,
        .greatest_value = INT32_MAX, .initial = "2048" },
    { "variables_hash_bucket_size", CONTEXT_STREAM, 1, 1, .set = map_set_hash_size,
        .greatest_value = INT32_MAX, .initial = "64" },
    { "variables_hash_max_size", CONTEXT_STREAM, 1, 1, .set = map_set_hash_size,
        .greatest_value = INT32_MAX, .initial = "1024" },
    { .name = NULL },
};

const struct feature map_feature = {
    .name = "map",
    .rows = rows,
};

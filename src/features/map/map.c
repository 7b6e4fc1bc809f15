/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks a text up in a map, and sets the captures of an expression. A failing expression ends the
 * search, and the value is the default for texts without a match, as in nginx. Reads the keys
 * and values of the block, and makes the variable. */
#include "features/map/map.h"

#include "base/check.h"
#include "features/features.h"
#include "features/set/set.h"
#include "session/record.h"
#include "settings/entries.h"
#include "settings/set_value.h"
#include "settings/template.h"

#include <assert.h>
#include <string.h>

uint32_t map_find(const struct map *map, const char *p, size_t n)
{
    uint32_t text = map_table_find(&map->exact, p, n);

    assert(map->exact.kind == MAP_EXACT && map->end.kind == MAP_END);
    assert(map->begin.kind == MAP_BEGIN);
    if (text == MAP_NONE)
        text = map_table_find(&map->end, p, n);
    return text != MAP_NONE ? text : map_table_find(&map->begin, p, n);
}

/* Copies the captures for the session and sets the variables of named ones; -1 without memory. */
static int keep_captures(struct fb_conn *conn, const struct map_regex *regex,
    const struct captures *captures, const struct value *named)
{
    struct captures *kept = session_keep(conn, sizeof(*kept));

    assert(regex_names(regex->regex) == 0 || regex->named != NULL);
    if (kept == NULL)
        return -1;
    *kept = *captures;
    captures_set(conn, kept);
    for (unsigned i = 0; i < regex_names(regex->regex); i++)
        variable_set(conn, regex->named[i], named[i]);
    return 0;
}

/* Finds the first matching expression; *text is its text, or unchanged. -1 without memory. */
static int match_regexes(
    const struct map *map, struct fb_conn *conn, const char *p, size_t n, uint32_t *text)
{
    struct value named[REGEX_NAMES_MAX];
    struct captures captures;

    for (const struct map_regex *regex = map->regexes; regex != NULL; regex = regex->next) {
        int matched = regex_match(regex->regex, conn, p, n, &captures, named);

        assert(matched >= -1 && matched <= 1);
        if (matched == 0)
            continue;
        if (matched == -1)
            return 0;
        *text = regex->text;
        return keep_captures(conn, regex, &captures, named);
    }
    return 0;
}

int map_look_up(
    const struct map *map, struct fb_conn *conn, const char *p, size_t n, uint32_t *text)
{
    uint32_t found = map_find(map, p, n);

    if (found == MAP_NONE)
        return n > 0 ? match_regexes(map, conn, p, n, text) : 0;
    *text = found;
    return 0;
}

int map_get(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct map *map = variable->arg;
    uint32_t text = map->otherwise;
    struct value source;
    size_t n;

    assert(map->source != NULL && map->texts != NULL);
    if (template_value(conn, map->source, &source) == -1)
        return -1;
    n = source.n;
    if (map->hostnames && n > 0 && source.p[n - 1] == '.')
        n--;
    if (map_look_up(map, conn, source.p, n, &text) == -1)
        return -1;
    return map_text_value(conn, &map->texts[text], value);
}

/* ---- The directive ---- */

struct map_reading {
    struct entries entries;
    struct map *map;
    bool names;       /* `hostnames` was read: keys may be masks */
    bool has_default; /* was written */
    bool is_volatile;
    const struct map_regex **last;
};

static void read_map_default(struct map_reading *reading, const struct conf_directive *entry)
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
static void add_host_name(
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
    regex->named = apply_alloc(apply, regex_names(regex->regex) * sizeof(struct variable *));
    if (regex->named == NULL || set_define_captures(apply, word, regex->regex, regex->named) == -1)
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
        add_host_name(reading, word, key, text);
    else
        add_key(reading, word, &reading->map->exact, key, strlen(key), text);
}

/* Reads a word without a value; a value is warned of and ignored, as in nginx. */
static bool read_word(struct map_reading *reading, const struct conf_directive *entry)
{
    bool is_names = strcmp(entry->name.text, "hostnames") == 0;

    if (!is_names && strcmp(entry->name.text, "volatile") != 0)
        return false;
    if (entry->arg_n > 0)
        report_warn(reading->entries.apply->report, &entry->args[0],
            "\"%s\" takes no value: write the key as \"\\%s\"", entry->name.text, entry->name.text);
    if (is_names)
        reading->names = reading->map->hostnames = true;
    else
        reading->is_volatile = true;
    return true;
}

static void read_map_entry(struct entries *entries, const struct conf_directive *entry)
{
    struct map_reading *reading = container_of(entries, struct map_reading, entries);

    if (read_word(reading, entry) || !entries_have(entries, entry, 1))
        return;
    if (strcmp(entry->name.text, "default") == 0)
        read_map_default(reading, entry);
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
        .entries = { .apply = apply,
            .directive = directive,
            .includes = true,
            .each = read_map_entry },
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

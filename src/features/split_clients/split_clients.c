/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the parts and texts, and finds the part of a hash by halving; the hash is nginx's. */
#include "features/split_clients/split_clients.h"

#include "base/check.h"
#include "features/features.h"
#include "settings/entries.h"
#include "settings/template.h"

#include <assert.h>
#include <string.h>

uint32_t split_clients_share(unsigned hundredths)
{
    assert(hundredths <= SPLIT_WHOLE);
    return (uint32_t)((uint64_t)hundredths * UINT32_MAX / SPLIT_WHOLE);
}

/* The bytes as a number, the first of them the lowest, on any machine */
static uint32_t load_little(const uint8_t *p, size_t n)
{
    uint32_t word = 0;

    for (size_t i = 0; i < n; i++)
        word |= (uint32_t)p[i] << 8 * i;
    return word;
}

uint32_t split_clients_hash(const char *p, size_t n)
{
    const uint32_t factor = 0x5bd1e995;
    uint32_t hash = (uint32_t)n, word;

    for (; n >= 4; p += 4, n -= 4) {
        word = load_little((const uint8_t *)p, 4) * factor;
        word = (word ^ word >> 24) * factor;
        hash = hash * factor ^ word;
    }
    if (n > 0)
        hash = (hash ^ load_little((const uint8_t *)p, n)) * factor;
    hash = (hash ^ hash >> 13) * factor;
    return hash ^ hash >> 15;
}

const struct map_text *split_clients_find(const struct split_clients *split, uint32_t hash)
{
    unsigned low = 0, high = split->n;

    assert(split->n <= SPLIT_WHOLE);
    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (hash < split->parts[middle].end)
            high = middle;
        else
            low = middle + 1;
    }
    assert(low <= split->n);
    return low < split->n ? &split->parts[low].text : &split->rest;
}

/* Works out the variable's value; its `arg` is the split_clients. -1 without memory. */
static int split_clients_get(
    struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct split_clients *split = variable->arg;
    struct value source;

    assert(split->source != NULL && (split->n == 0 || split->parts != NULL));
    if (template_value(conn, split->source, &source) == -1)
        return -1;
    return map_text_value(
        conn, split_clients_find(split, split_clients_hash(source.p, source.n)), value);
}

struct split_reading {
    struct entries entries;
    struct split_part *parts; /* room for one an entry */
    unsigned n, total;        /* hundredths of a percent with a part */
    const struct conf_word *rest;
    struct map_text rest_text;
};

/* Reads "25%" or "0.5%" as hundredths of a percent; 0: it is nothing of the kind. */
static unsigned parse_percent(const char *text)
{
    unsigned n = 0, decimals = 0;
    bool point = false;

    for (; *text != '%'; text++) {
        if (*text == '.' && !point) {
            point = true;
            continue;
        }
        if (*text < '0' || *text > '9' || decimals == 2 || n > SPLIT_WHOLE)
            return 0;
        n = n * 10 + (unsigned)(*text - '0');
        decimals += point;
    }
    for (; decimals < 2; decimals++)
        n *= 10;
    return text[1] == '\0' ? n : 0;
}

static void read_rest(struct split_reading *reading, const struct conf_directive *entry)
{
    if (reading->rest != NULL) {
        report_warn(reading->entries.apply->report, &entry->name,
            "\"*\" was given before: the second is not used");
        return;
    }
    reading->rest = &entry->name;
    reading->rest_text =
        (struct map_text) { .p = entry->args[0].text, .n = (uint32_t)strlen(entry->args[0].text) };
}

static void read_split_entry(struct entries *entries, const struct conf_directive *entry)
{
    struct split_reading *reading = container_of(entries, struct split_reading, entries);
    struct conf_report *report = entries->apply->report;
    const char *text;
    unsigned share;
    uint32_t begin;

    if (!entries_have(entries, entry, 1))
        return;
    if (strcmp(entry->name.text, "*") == 0) {
        read_rest(reading, entry);
        return;
    }
    share = parse_percent(entry->name.text);
    if (share == 0) {
        report_error(report, &entry->name,
            "invalid percent value \"%s\": expected a number with up to two decimals and \"%%\", "
            "or \"*\"",
            entry->name.text);
        return;
    }
    reading->total += reading->rest != NULL ? SPLIT_WHOLE + 1 : share;
    if (reading->total > SPLIT_WHOLE) {
        report_error(report, &entry->name, "percent total is greater than 100%%");
        reading->total = 0;
        return;
    }
    text = entry->args[0].text;
    begin = reading->n > 0 ? reading->parts[reading->n - 1].end : 0;
    reading->parts[reading->n++] = (struct split_part) {
        .end = begin + split_clients_share(share),
        .text = { .p = text, .n = (uint32_t)strlen(text) },
    };
}

static unsigned count_entries(const struct conf_directive *directive)
{
    const struct conf_directive *entry;
    unsigned n = 0;

    STAILQ_FOREACH (entry, &directive->block->directives, link)
        n++;
    return n;
}

static int split_clients_set(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct split_clients *split = apply_alloc(apply, sizeof(*split));
    struct split_reading reading = {
        .entries = { .apply = apply, .directive = directive, .each = read_split_entry },
        .parts = apply_alloc(apply, count_entries(directive) * sizeof(*reading.parts)),
    };
    struct variable *variable;
    int rc;

    (void)field;
    if (split == NULL || reading.parts == NULL)
        return -1;
    rc = entries_read(&reading.entries);
    split->source = template_of(apply, &directive->args[0], directive->args[0].text);
    variable = template_define(apply, &directive->args[1]);
    if (rc == -1 || split->source == NULL || variable == NULL)
        return -1;
    split->parts = reading.parts;
    split->n = reading.n;
    split->rest = (struct map_text) { .p = "" };
    if (reading.rest != NULL)
        split->rest = reading.rest_text;
    variable->get = split_clients_get;
    variable->arg = split;
    variable->flags = VARIABLE_CHANGEABLE;
    return 0;
}

static const struct setting rows[] = {
    { "split_clients", CONTEXT_STREAM, 2, 2, .set = split_clients_set, .block = true,
        .repeats = true, .unset = "none" },
    { .name = NULL },
};

const struct feature split_clients_feature = {
    .name = "split_clients",
    .rows = rows,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* `split_clients`: reads the parts and their texts, and makes its variable. */
#include "features/split_clients/split_clients.h"

#include "base/check.h"
#include "features/features.h"
#include "settings/entries.h"
#include "settings/template.h"

#include <string.h>

struct split_reading {
    struct entries entries;
    struct split_part *parts; /* room for one an entry */
    unsigned n, total;        /* hundredths of a percent that have a part */
    const struct conf_word *rest;
    struct map_text rest_text;
};

static struct split_reading *reading_of(struct entries *entries)
{
    return container_of(entries, struct split_reading, entries);
}

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
            "\"*\" was given before: this one is not used");
        return;
    }
    reading->rest = &entry->name;
    reading->rest_text =
        (struct map_text) { .p = entry->args[0].text, .n = (uint32_t)strlen(entry->args[0].text) };
}

static void read_entry(struct entries *entries, const struct conf_directive *entry)
{
    struct split_reading *reading = reading_of(entries);
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

static int split_clients_set(struct apply *apply, const struct setting *setting,
    const struct conf_directive *directive, void *field)
{
    struct split_clients *split = apply_alloc(apply, sizeof(*split));
    struct split_reading reading = {
        .entries = { .apply = apply, .directive = directive, .each = read_entry },
        .parts = apply_alloc(apply, count_entries(directive) * sizeof(*reading.parts)),
    };
    struct variable *variable;
    int rc;

    (void)setting;
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

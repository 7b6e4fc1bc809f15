/* SPDX-License-Identifier: BSD-2-Clause */
/* `geo`: reads networks, or ranges of addresses, and makes the variable. */
#include "features/geo/geo.h"

#include "base/number.h"
#include "features/features.h"
#include "features/geo/geo_tree.h"
#include "settings/entries.h"
#include "settings/template.h"

#include <arpa/inet.h>
#include <string.h>

struct geo_reading {
    struct entries entries;
    struct geo_tree v4, v6;
    struct arena *arena; /* of the trees */
    bool ranges;
    bool begun; /* an address or a default was read */
    uint32_t nothing, otherwise;
};

static struct conf_report *report_of(const struct geo_reading *reading)
{
    return reading->entries.apply->report;
}

static const char *text_of(const struct geo_reading *reading, uint32_t text)
{
    return reading->entries.texts[text].p;
}

static int fail_memory(struct geo_reading *reading)
{
    return report_error(report_of(reading), NULL, "out of memory");
}

/* The word of an entry with an address, the addresses, and the tree for the addresses. */
struct span {
    const struct conf_word *word;
    struct geo_tree *tree;
    struct geo_address first, last;
};

static struct geo_tree *tree_of(struct geo_reading *reading, int family)
{
    return family == 6 ? &reading->v6 : &reading->v4;
}

/* Reads "address" or "address/bits"; the family, or 0. */
static int parse_network(struct geo_reading *reading, struct span *span)
{
    const char *text = span->word->text, *slash = strchr(text, '/');
    size_t n = slash != NULL ? (size_t)(slash - text) : strlen(text);
    int family = geo_address_parse(text, n, &span->first);
    int64_t all = family == 6 ? 128 : 32, bits = all;
    struct geo_address written = span->first;

    if (family == 0 || (slash != NULL && number_parse(slash + 1, 0, all, &bits) != NUMBER_OK))
        return 0;
    span->last = geo_address_fill(written, (unsigned)(all - bits), true);
    span->first = geo_address_fill(written, (unsigned)(all - bits), false);
    if (geo_address_compare(written, span->first) != 0)
        report_warn(report_of(reading), span->word, "low address bits of %s are meaningless", text);
    if (family == 6 && bits >= 96 && written.high == 0 && written.low >> 32 == 0xffff)
        report_warn(report_of(reading), span->word,
            "\"%s\" matches no address: write it in the form of IPv4", text);
    return family;
}

/* Reads "address-address"; the family, or 0. */
static int parse_range(struct span *span)
{
    const char *text = span->word->text, *dash = strchr(text, '-');
    int family;

    if (dash == NULL)
        return 0;
    family = geo_address_parse(text, (size_t)(dash - text), &span->first);
    if (family == 0 || geo_address_parse(dash + 1, strlen(dash + 1), &span->last) != family)
        return 0;
    return geo_address_compare(span->first, span->last) <= 0 ? family : 0;
}

/* Reads the word's addresses; -1 after a report. */
static int read_span(struct geo_reading *reading, const struct conf_word *word, struct span *span)
{
    int family;

    *span = (struct span) { .word = word };
    family = reading->ranges ? parse_range(span) : parse_network(reading, span);
    reading->begun = true;
    if (family != 0) {
        span->tree = tree_of(reading, family);
        return 0;
    }
    if (reading->ranges)
        return report_error(report_of(reading), word,
            "invalid range \"%s\": expected two addresses, such as 192.0.2.0-192.0.2.255",
            word->text);
    return report_error(report_of(reading), word,
        "invalid network \"%s\": expected an address, or address/bits", word->text);
}

static void delete_span(struct geo_reading *reading, const struct conf_directive *entry)
{
    struct span span;

    if (read_span(reading, &entry->args[0], &span) == -1)
        return;
    if (!geo_tree_delete(span.tree, span.first, span.last))
        report_warn(report_of(reading), span.word, "no %s \"%s\" to delete",
            reading->ranges ? "address range" : "network", span.word->text);
}

/* Writes an address as text. */
static const char *format_address(
    const struct geo_tree *tree, struct geo_address address, char text[INET6_ADDRSTRLEN])
{
    uint64_t words[2] = { address.high, address.low };
    uint8_t bytes[16];

    for (int i = 0; i < 16; i++)
        bytes[i] = (uint8_t)(words[i / 8] >> (56 - i % 8 * 8));
    if (tree->is_v6)
        return inet_ntop(AF_INET6, bytes, text, INET6_ADDRSTRLEN);
    return inet_ntop(AF_INET, bytes + 12, text, INET6_ADDRSTRLEN);
}

static void add_span(struct geo_reading *reading, const struct span *span, uint32_t text)
{
    char first[INET6_ADDRSTRLEN], last[INET6_ADDRSTRLEN];
    struct geo_range other = { .text = text };

    switch (geo_tree_add(span->tree, span->first, span->last, text, &other)) {
    case GEO_REPLACED:
        report_warn(report_of(reading), span->word,
            "duplicate %s \"%s\", value: \"%s\", old value: \"%s\"",
            reading->ranges ? "range" : "network", span->word->text, text_of(reading, text),
            text_of(reading, other.text));
        break;
    case GEO_OVERLAPS:
        report_error(report_of(reading), span->word, "range \"%s\" overlaps \"%s-%s\"",
            span->word->text, format_address(span->tree, other.first, first),
            format_address(span->tree, other.last, last));
        break;
    case GEO_NO_MEMORY:
        fail_memory(reading);
        break;
    case GEO_ADDED:
        break;
    }
}

/* Reads the default: the network of all addresses, in every family. */
static void read_geo_default(struct geo_reading *reading, const struct conf_directive *entry)
{
    uint32_t text = entries_add_text(&reading->entries, &entry->args[0], false);

    if (text == MAP_NONE)
        return;
    if (reading->begun && reading->otherwise != reading->nothing && reading->ranges)
        report_warn(report_of(reading), &entry->name,
            "duplicate default geo range value: \"%s\", old value: \"%s\"", text_of(reading, text),
            text_of(reading, reading->otherwise));
    reading->begun = true;
    if (reading->ranges) {
        reading->otherwise = text;
        return;
    }
    for (int family = 4; family <= 6; family += 2) {
        struct geo_address none = { 0, 0 };
        const struct span all = { .word = &entry->name,
            .tree = tree_of(reading, family),
            .last = geo_address_fill(none, family == 6 ? 128 : 32, true) };

        add_span(reading, &all, text);
    }
}

static void begin_ranges(struct geo_reading *reading, const struct conf_directive *entry)
{
    if (!entries_have(&reading->entries, entry, 0))
        return;
    if (reading->begun && !reading->ranges)
        report_error(report_of(reading), &entry->name,
            "the \"ranges\" directive must be the first directive inside \"geo\" block");
    reading->ranges = reading->v4.disjoint = reading->v6.disjoint = true;
}

static void read_geo_entry(struct entries *entries, const struct conf_directive *entry)
{
    struct geo_reading *reading = container_of(entries, struct geo_reading, entries);
    struct span span;
    uint32_t text;

    if (strcmp(entry->name.text, "ranges") == 0) {
        begin_ranges(reading, entry);
        return;
    }
    if (!entries_have(entries, entry, 1))
        return;
    if (strcmp(entry->name.text, "default") == 0) {
        read_geo_default(reading, entry);
        return;
    }
    if (strcmp(entry->name.text, "delete") == 0) {
        delete_span(reading, entry);
        return;
    }
    text = entries_add_text(entries, &entry->args[0], false);
    if (text != MAP_NONE && read_span(reading, &entry->name, &span) == 0)
        add_span(reading, &span, text);
}

/* Reads the block into trees, and makes tables of them; -1 after a report. */
static int read_geo_block(struct geo_reading *reading, struct geo *geo)
{
    const struct conf_word nothing = { .text = "" };
    struct arena *arena = reading->entries.apply->cycle->arena;

    reading->nothing = reading->otherwise = entries_add_text(&reading->entries, &nothing, false);
    if (reading->nothing == MAP_NONE || entries_read(&reading->entries) == -1)
        return -1;
    if (geo_tree_finish(&reading->v4, reading->otherwise, arena, &geo->v4) == -1 ||
        geo_tree_finish(&reading->v6, reading->otherwise, arena, &geo->v6) == -1)
        return fail_memory(reading);
    geo->texts = entries_finish(&reading->entries);
    return geo->texts == NULL ? -1 : 0;
}

static const struct variable *find_geo_source(
    struct apply *apply, const struct conf_directive *directive)
{
    static const char usual[] = "remote_addr";

    if (directive->arg_n > 1)
        return template_variable(apply, &directive->args[0]);
    return template_use(apply, &directive->name, usual, strlen(usual));
}

static int geo_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct geo *geo = apply_alloc(apply, sizeof(*geo));
    struct geo_reading reading = {
        .entries = { .apply = apply,
            .directive = directive,
            .includes = true,
            .each = read_geo_entry },
        .arena = entries_arena(apply),
        .v6.is_v6 = true,
    };
    struct variable *variable;
    int rc = -1;

    (void)field;
    reading.v4.arena = reading.v6.arena = reading.arena;
    if (geo == NULL || reading.arena == NULL) {
        arena_destroy(&reading.arena);
        return -1;
    }
    geo->source = find_geo_source(apply, directive);
    variable = template_define(apply, &directive->args[directive->arg_n - 1]);
    if (read_geo_block(&reading, geo) == 0 && geo->source != NULL && variable != NULL) {
        variable->get = geo_get;
        variable->arg = geo;
        variable->flags = VARIABLE_CHANGEABLE;
        rc = 0;
    }
    arena_destroy(&reading.arena);
    entries_discard(&reading.entries);
    return rc;
}

static const struct setting rows[] = {
    { "geo", CONTEXT_STREAM, 1, 2, .set = geo_set, .block = true, .repeats = true,
        .unset = "none" },
    { .name = NULL },
};

const struct feature geo_feature = {
    .name = "geo",
    .rows = rows,
};

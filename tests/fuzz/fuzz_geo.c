/* SPDX-License-Identifier: BSD-2-Clause */
/* Any text as the block of a `geo`: it is refused, or the tables find for all addresses, and for
 * the ends of the ranges, the result of a walk through all ranges. */
#include "features/geo/geo.h"
#include "fuzz/block.h"
#include "fuzz/fuzz.h"
#include "settings/blocks.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* The walk takes at most so many ranges of an input. */
#define RANGES_MOST 300

struct span {
    bool is_v6;
    struct geo_address first, last;
    const char *text;
};

struct model {
    struct span spans[RANGES_MOST];
    unsigned n;
    bool ranges;
    const char *otherwise;
};

static bool is_less(struct geo_address a, struct geo_address b)
{
    return a.high < b.high || (a.high == b.high && a.low < b.low);
}

static bool is_same(struct geo_address a, struct geo_address b)
{
    return a.high == b.high && a.low == b.low;
}

static struct geo_address step(struct geo_address address, int by)
{
    struct geo_address next = { address.high, address.low + (uint64_t)by };

    if (by > 0 && next.low == 0)
        next.high++;
    if (by < 0 && address.low == 0)
        next.high--;
    return next;
}

/* Reads the addresses of an accepted entry; false: too many for the walk. */
static bool read_span(const char *text, bool ranges, struct span *span)
{
    const char *cut = strchr(text, ranges ? '-' : '/');
    size_t n = cut != NULL ? (size_t)(cut - text) : strlen(text);
    int family = geo_address_parse(text, n, &span->first), all = family == 6 ? 128 : 32;
    int left = cut != NULL && !ranges ? all - atoi(cut + 1) : 0;

    require(family != 0, "an accepted address is one");
    span->is_v6 = family == 6;
    span->last = span->first;
    if (ranges)
        return geo_address_parse(cut + 1, strlen(cut + 1), &span->last) == family;
    for (int i = 0; i < left; i++) {
        uint64_t bit = UINT64_C(1) << i % 64;
        uint64_t *first = i < 64 ? &span->first.low : &span->first.high;
        uint64_t *last = i < 64 ? &span->last.low : &span->last.high;

        *first &= ~bit;
        *last |= bit;
    }
    return true;
}

static struct span *find_same(struct model *model, const struct span *span)
{
    for (unsigned i = 0; i < model->n; i++)
        if (model->spans[i].is_v6 == span->is_v6 && is_same(model->spans[i].first, span->first) &&
            is_same(model->spans[i].last, span->last))
            return &model->spans[i];
    return NULL;
}

static bool add_network(struct model *model, const struct span *span)
{
    struct span *same = find_same(model, span);

    if (same == NULL && model->n == RANGES_MOST)
        return false;
    if (same == NULL)
        same = &model->spans[model->n++];
    *same = *span;
    return true;
}

static void drop_network(struct model *model, const struct span *span)
{
    struct span *same = find_same(model, span);

    if (same != NULL)
        *same = model->spans[--model->n];
}

static bool add_default(struct model *model, const char *text)
{
    const struct span v4 = { .last = { 0, UINT32_MAX }, .text = text };
    const struct span v6 = { .is_v6 = true, .last = { UINT64_MAX, UINT64_MAX }, .text = text };

    if (!model->ranges)
        return add_network(model, &v4) && add_network(model, &v6);
    model->otherwise = text;
    return true;
}

/* Whether the walk can predict the result of the entry. */
static bool add_entry(struct model *model, const struct conf_directive *entry)
{
    bool deleted = strcmp(entry->name.text, "delete") == 0;
    struct span span = { .text = deleted ? NULL : entry->args[0].text };

    if (!read_span(deleted ? entry->args[0].text : entry->name.text, model->ranges, &span))
        return false;
    if (model->ranges && (deleted || find_same(model, &span) != NULL))
        return false; /* the rest of a cut range is a separate range */
    if (!deleted)
        return add_network(model, &span);
    drop_network(model, &span);
    return true;
}

static bool build(struct model *model, const struct conf_block *entries)
{
    const struct conf_directive *entry;

    *model = (struct model) { .otherwise = "" };
    STAILQ_FOREACH (entry, &entries->directives, link) {
        if (strcmp(entry->name.text, "ranges") == 0)
            model->ranges = true;
        else if (strcmp(entry->name.text, "default") == 0 ? !add_default(model, entry->args[0].text)
                                                          : !add_entry(model, entry))
            return false;
    }
    return true;
}

static bool has_address(const struct span *span, bool is_v6, struct geo_address address)
{
    return span->is_v6 == is_v6 && !is_less(address, span->first) && !is_less(span->last, address);
}

static bool is_narrower(const struct span *a, const struct span *b)
{
    return !is_less(a->first, b->first) && !is_less(b->last, a->last);
}

/* Returns the text of the narrowest range around the address. */
static const char *walk(const struct model *model, bool is_v6, struct geo_address address)
{
    const struct span *best = NULL;

    for (unsigned i = 0; i < model->n; i++) {
        const struct span *span = &model->spans[i];

        if (has_address(span, is_v6, address) && (best == NULL || is_narrower(span, best)))
            best = span;
    }
    return best != NULL ? best->text : model->otherwise;
}

static void write_address(bool is_v6, struct geo_address address, char text[INET6_ADDRSTRLEN])
{
    uint8_t bytes[16];

    for (int i = 0; i < 16; i++)
        bytes[i] = (uint8_t)((i < 8 ? address.high : address.low) >> (56 - i % 8 * 8));
    inet_ntop(is_v6 ? AF_INET6 : AF_INET, bytes + (is_v6 ? 0 : 12), text, INET6_ADDRSTRLEN);
}

static void look_up(
    const struct geo *geo, const struct model *model, bool is_v6, struct geo_address address)
{
    const char *expected = walk(model, is_v6, address), *found;
    char text[INET6_ADDRSTRLEN];

    write_address(is_v6, address, text);
    if (is_v6 && address.high == 0 && address.low >> 32 == 0xffff)
        return;
    found = geo->texts[geo_find(geo, text, strlen(text))].p;
    require(strcmp(found, expected) == 0, "both find the same range");
}

static void look_at_ends(const struct geo *geo, const struct model *model)
{
    for (unsigned i = 0; i < model->n; i++) {
        const struct span *span = &model->spans[i];
        struct geo_address last = { span->is_v6 ? UINT64_MAX : 0,
            span->is_v6 ? UINT64_MAX : UINT32_MAX };

        look_up(geo, model, span->is_v6, span->first);
        look_up(geo, model, span->is_v6, span->last);
        if ((span->first.high | span->first.low) != 0)
            look_up(geo, model, span->is_v6, step(span->first, -1));
        if (!is_same(span->last, last))
            look_up(geo, model, span->is_v6, step(span->last, 1));
    }
}

/* Whether any two ranges are disjoint or nested: for overlaps the order decides. */
static bool is_plain(const struct model *model)
{
    for (unsigned i = 0; i < model->n; i++)
        for (unsigned k = 0; k < i; k++) {
            const struct span *a = &model->spans[i], *b = &model->spans[k];

            if (a->is_v6 != b->is_v6 || is_less(a->last, b->first) || is_less(b->last, a->first))
                continue;
            if (!is_narrower(a, b) && !is_narrower(b, a))
                return false;
            if (model->ranges && is_narrower(b, a) && !a->is_v6) /* nginx's blocks */
                return false;
        }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct model model;
    struct block block;
    const char *p;
    size_t n;

    block_read(&block, "geo $a $v", geo_feature.rows[0].set, data, size);
    if (block.variable != NULL) {
        const struct geo *geo = block.variable->arg;
        bool known = build(&model, block.directive->block) && is_plain(&model);

        if (known)
            look_at_ends(geo, &model);
        while ((p = block_next(&block, &n)) != NULL) {
            struct geo_address address;
            int family = geo_address_parse(p, n, &address);

            geo_find(geo, p, n);
            if (known && family != 0)
                look_up(geo, &model, family == 6, address);
        }
    }
    block_free(&block);
    return 0;
}

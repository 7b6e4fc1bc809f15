/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranges in a tree, by first address, the wider first. */
#include "features/geo/geo_tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BITS 16

static int compare_ranges(const struct geo_range *a, const struct geo_range *b)
{
    int first = geo_address_compare(a->first, b->first);

    return first != 0 ? first : geo_address_compare(b->last, a->last);
}

RB_GENERATE_INTERNAL(geo_ranges, geo_range, node, compare_ranges, static __attribute__((unused)))

static struct geo_address before(struct geo_address address)
{
    return (struct geo_address) { address.high - (address.low == 0), address.low - 1 };
}

static struct geo_address behind(struct geo_address address)
{
    return (struct geo_address) { address.high + (address.low == UINT64_MAX), address.low + 1 };
}

static struct geo_address last_of(bool is_v6)
{
    return is_v6 ? (struct geo_address) { UINT64_MAX, UINT64_MAX }
                 : (struct geo_address) { 0, UINT32_MAX };
}

/* Whether a block of nginx's begins there. */
static bool is_aligned(const struct geo_tree *tree, struct geo_address address)
{
    return !tree->is_v6 && (address.low & ((1U << BLOCK_BITS) - 1)) == 0;
}

static int insert_range(
    struct geo_tree *tree, struct geo_address first, struct geo_address last, uint32_t text)
{
    struct geo_range *range = arena_alloc(tree->arena, sizeof(*range));

    assert(geo_address_compare(first, last) <= 0);
    if (range == NULL)
        return -1;
    *range = (struct geo_range) { .first = first, .last = last, .text = text };
    RB_INSERT(geo_ranges, &tree->ranges, range);
    tree->n++;
    return 0;
}

static void drop(struct geo_tree *tree, struct geo_range *range)
{
    assert(tree->n > 0);
    RB_REMOVE(geo_ranges, &tree->ranges, range);
    tree->n--;
}

static enum geo_added add_network(struct geo_tree *tree, struct geo_address first,
    struct geo_address last, uint32_t text, struct geo_range *other)
{
    struct geo_range wanted = { .first = first, .last = last };
    struct geo_range *same = RB_FIND(geo_ranges, &tree->ranges, &wanted);

    if (same == NULL)
        return insert_range(tree, first, last, text) == -1 ? GEO_NO_MEMORY : GEO_ADDED;
    assert(geo_address_compare(same->last, last) == 0);
    *other = *same;
    same->text = text;
    return GEO_REPLACED;
}

static bool delete_network(struct geo_tree *tree, struct geo_address first, struct geo_address last)
{
    struct geo_range wanted = { .first = first, .last = last };
    struct geo_range *same = RB_FIND(geo_ranges, &tree->ranges, &wanted);

    if (same != NULL)
        drop(tree, same);
    return same != NULL;
}

/* Returns the first range with an address from `first` on, or NULL. */
static struct geo_range *range_from(struct geo_tree *tree, struct geo_address first)
{
    struct geo_range wanted = { .first = first, .last = last_of(true) };
    struct geo_range *next = RB_NFIND(geo_ranges, &tree->ranges, &wanted);
    struct geo_range *previous =
        next != NULL ? RB_PREV(geo_ranges, &tree->ranges, next) : RB_MAX(geo_ranges, &tree->ranges);

    return previous != NULL && geo_address_compare(previous->last, first) >= 0 ? previous : next;
}

static bool begins_by(const struct geo_range *range, struct geo_address last)
{
    return range != NULL && geo_address_compare(range->first, last) <= 0;
}

/* Whether the addresses are, in each block common with the range, within the range. */
static bool is_within(const struct geo_tree *tree, const struct geo_range *range,
    struct geo_address first, struct geo_address last)
{
    return (geo_address_compare(range->first, first) <= 0 || is_aligned(tree, range->first)) &&
           (geo_address_compare(range->last, last) >= 0 || is_aligned(tree, behind(range->last)));
}

static bool has_within(
    const struct geo_range *range, struct geo_address first, struct geo_address last)
{
    return geo_address_compare(range->first, first) >= 0 &&
           geo_address_compare(range->last, last) <= 0;
}

/* Takes the addresses away from the range, of which up to two parts stay; -1 without memory. */
static int cut(struct geo_tree *tree, struct geo_range *range, struct geo_address first,
    struct geo_address last)
{
    struct geo_range whole = *range;

    assert(geo_address_compare(whole.last, first) >= 0 && begins_by(range, last));
    if (geo_address_compare(whole.last, last) > 0 &&
        insert_range(tree, behind(last), whole.last, whole.text) == -1)
        return -1;
    if (geo_address_compare(whole.first, first) < 0)
        range->last = before(first); /* stays in its place: the ranges are disjoint */
    else
        drop(tree, range);
    return 0;
}

/* Finds a range that overlaps the addresses only partly, or is equal. */
static enum geo_added look_for_other(struct geo_tree *tree, struct geo_address first,
    struct geo_address last, struct geo_range *other)
{
    enum geo_added result = GEO_ADDED;
    struct geo_range *range = range_from(tree, first);

    for (; begins_by(range, last); range = RB_NEXT(geo_ranges, &tree->ranges, range)) {
        if (geo_address_compare(range->first, first) == 0 &&
            geo_address_compare(range->last, last) == 0)
            result = GEO_REPLACED;
        else if (is_within(tree, range, first, last) || has_within(range, first, last))
            continue;
        else
            result = GEO_OVERLAPS;
        *other = *range;
        return result;
    }
    return result;
}

static enum geo_added add_range(struct geo_tree *tree, struct geo_address first,
    struct geo_address last, uint32_t text, struct geo_range *other)
{
    enum geo_added result = look_for_other(tree, first, last, other);
    struct geo_range *range = range_from(tree, first), *next;
    struct geo_address at = first;

    assert(geo_address_compare(first, last) <= 0 && text != MAP_NONE);
    if (result == GEO_OVERLAPS)
        return result;
    for (; begins_by(range, last); range = next) {
        next = RB_NEXT(geo_ranges, &tree->ranges, range);
        if (is_within(tree, range, first, last)) {
            if (cut(tree, range, first, last) == -1)
                return GEO_NO_MEMORY;
            continue;
        }
        if (geo_address_compare(at, range->first) < 0 &&
            insert_range(tree, at, before(range->first), text) == -1)
            return GEO_NO_MEMORY;
        if (geo_address_compare(range->last, last) == 0)
            return result;
        at = behind(range->last);
    }
    return insert_range(tree, at, last, text) == -1 ? GEO_NO_MEMORY : result;
}

/* Whether range and addresses are, in every common block, equal. */
static bool blocks_are_equal(const struct geo_tree *tree, const struct geo_range *range,
    struct geo_address first, struct geo_address last)
{
    int begins = geo_address_compare(range->first, first);
    int ends = geo_address_compare(range->last, last);

    return (begins == 0 || is_aligned(tree, begins < 0 ? first : range->first)) &&
           (ends == 0 || is_aligned(tree, behind(ends > 0 ? last : range->last)));
}

static bool delete_range(struct geo_tree *tree, struct geo_address first, struct geo_address last)
{
    struct geo_range *from = range_from(tree, first), *range = from, *next;
    struct geo_address at = first;
    bool whole = false;

    assert(geo_address_compare(first, last) <= 0);
    for (; begins_by(range, last); range = RB_NEXT(geo_ranges, &tree->ranges, range)) {
        if (geo_address_compare(range->first, at) > 0 ||
            !blocks_are_equal(tree, range, first, last))
            return false;
        whole = geo_address_compare(range->last, last) >= 0;
        at = behind(range->last);
    }
    for (range = from; whole && begins_by(range, last); range = next) {
        next = RB_NEXT(geo_ranges, &tree->ranges, range);
        if (cut(tree, range, first, last) == -1)
            return false;
    }
    return whole;
}

enum geo_added geo_tree_add(struct geo_tree *tree, struct geo_address first,
    struct geo_address last, uint32_t text, struct geo_range *other)
{
    return (tree->disjoint ? add_range : add_network)(tree, first, last, text, other);
}

bool geo_tree_delete(struct geo_tree *tree, struct geo_address first, struct geo_address last)
{
    return (tree->disjoint ? delete_range : delete_network)(tree, first, last);
}

/* Nested networks: at most one for a number of bits. */
#define DEPTH_MAX 129

struct flat {
    struct geo_address *begins;
    uint32_t *texts;
    uint32_t n, most;
    const struct geo_range *open[DEPTH_MAX]; /* networks not yet ended, the widest first */
    unsigned depth;
    uint32_t outside;
};

/* Gives the text to the addresses from `at` on, until the next text begins. */
static void begin_text(struct flat *flat, struct geo_address at, uint32_t text)
{
    if (flat->n > 0 && geo_address_compare(flat->begins[flat->n - 1], at) == 0)
        flat->n--;
    if (flat->n > 0 && flat->texts[flat->n - 1] == text)
        return;
    assert(flat->n < flat->most);
    assert(flat->n == 0 || geo_address_compare(flat->begins[flat->n - 1], at) < 0);
    flat->begins[flat->n] = at;
    flat->texts[flat->n++] = text;
}

static void end_range(struct flat *flat, bool is_v6)
{
    const struct geo_range *range;

    assert(flat->depth > 0);
    range = flat->open[--flat->depth];
    if (geo_address_compare(range->last, last_of(is_v6)) != 0)
        begin_text(flat, behind(range->last),
            flat->depth > 0 ? flat->open[flat->depth - 1]->text : flat->outside);
}

static void flatten(struct flat *flat, struct geo_tree *tree)
{
    struct geo_range *range;

    begin_text(flat, (struct geo_address) { 0, 0 }, flat->outside);
    RB_FOREACH (range, geo_ranges, &tree->ranges) {
        while (flat->depth > 0 &&
               geo_address_compare(flat->open[flat->depth - 1]->last, range->first) < 0)
            end_range(flat, tree->is_v6);
        assert(flat->depth < DEPTH_MAX);
        if (tree->least_holds && flat->depth > 0 && flat->open[flat->depth - 1]->text < range->text)
            range->text = flat->open[flat->depth - 1]->text;
        flat->open[flat->depth++] = range;
        begin_text(flat, range->first, range->text);
    }
    while (flat->depth > 0)
        end_range(flat, tree->is_v6);
}

static int keep_table(
    const struct flat *flat, bool is_v6, struct arena *arena, struct geo_table *table)
{
    uint32_t *texts = arena_alloc(arena, flat->n * sizeof(*texts)), *v4 = NULL;
    struct geo_address *v6 = NULL;

    if (is_v6)
        v6 = arena_alloc(arena, flat->n * sizeof(*v6));
    else
        v4 = arena_alloc(arena, flat->n * sizeof(*v4));
    if (texts == NULL || (v4 == NULL && v6 == NULL))
        return -1;
    memcpy(texts, flat->texts, flat->n * sizeof(*texts));
    if (is_v6)
        memcpy(v6, flat->begins, flat->n * sizeof(*v6));
    for (uint32_t i = 0; !is_v6 && i < flat->n; i++)
        v4[i] = (uint32_t)flat->begins[i].low;
    *table = (struct geo_table) { .n = flat->n, .v4 = v4, .v6 = v6, .texts = texts };
    return 0;
}

int geo_tree_finish(
    struct geo_tree *tree, uint32_t outside, struct arena *arena, struct geo_table *table)
{
    struct flat flat = { .most = tree->n * 2 + 1, .outside = outside };
    int rc = -1;

    if (tree->n > UINT32_MAX / 4)
        return -1;
    flat.begins = reallocarray(NULL, flat.most, sizeof(*flat.begins));
    flat.texts = reallocarray(NULL, flat.most, sizeof(*flat.texts));
    if (flat.begins != NULL && flat.texts != NULL) {
        flatten(&flat, tree);
        rc = keep_table(&flat, tree->is_v6, arena, table);
    }
    free(flat.begins);
    free(flat.texts);
    return rc;
}

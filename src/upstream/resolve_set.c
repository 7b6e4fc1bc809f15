/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of addresses, few enough to compare all pairs. */
#include "upstream/resolve_set.h"

#include <assert.h>
#include <string.h>

struct resolve_set *resolve_set_create(const struct memory *memory, const struct resolve_set *from)
{
    const struct resolve_set empty = { .room = RESOLVE_ADDRESSES };
    size_t room = from != NULL ? from->n : empty.room;
    struct resolve_set *set = memory_alloc(memory, sizeof(*set) + room * sizeof(set->list[0]));

    if (set == NULL)
        return NULL;
    *set = from != NULL ? *from : empty;
    set->room = room;
    if (from != NULL)
        memcpy(set->list, from->list, from->n * sizeof(set->list[0]));
    return set;
}

static bool has_address(const struct resolve_set *set, const struct resolve_found *found)
{
    for (size_t i = 0; i < set->n; i++)
        if (address_equal(&set->list[i].address, &found->address))
            return true;
    return false;
}

void resolve_set_add(struct resolve_set *set, const struct resolve_found *found)
{
    assert(set->n <= set->room);
    if (set->n == set->room)
        set->is_cut = true;
    else
        set->list[set->n++] = *found;
}

void resolve_set_join(struct resolve_set *set, const struct resolve_set *other)
{
    for (size_t i = 0; i < other->n; i++)
        if (!has_address(set, &other->list[i]))
            resolve_set_add(set, &other->list[i]);
}

static int compare_found(const void *a, const void *b)
{
    const struct resolve_found *one = a, *other = b;

    if (one->priority != other->priority)
        return one->priority < other->priority ? -1 : 1;
    return address_compare(&one->address, &other->address);
}

void resolve_set_sort(struct resolve_set *set, bool backup)
{
    size_t n = set->n;

    qsort(set->list, n, sizeof(set->list[0]), compare_found);
    set->n = 0;
    for (size_t i = 0; i < n; i++) {
        struct resolve_found found = set->list[i];
        bool is_first = found.priority == set->list[0].priority;

        if ((backup && !is_first) || has_address(set, &found))
            continue;
        found.backup = backup || !is_first;
        set->list[set->n++] = found;
    }
    assert(n == 0 || set->n > 0);
}

bool resolve_set_equal(const struct resolve_set *a, const struct resolve_set *b)
{
    if (a == NULL || b == NULL || a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->list[i].backup != b->list[i].backup || a->list[i].weight != b->list[i].weight ||
            !address_equal(&a->list[i].address, &b->list[i].address))
            return false;
    return true;
}

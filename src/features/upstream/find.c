/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds groups: of `upstream {}` by name, in letters of either case, and of single addresses by
 * name, resolver and time-out. */
#include "features/upstream/upstream.h"

#include "settings/apply.h"

#include <string.h>
#include <strings.h>

static int order_numbers(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_entries(const struct upstream_entry *a, const struct upstream_entry *b)
{
    const struct upstream *x = a->upstream, *y = b->upstream;
    int order = order_numbers(x->is_single, y->is_single);

    if (order == 0)
        order = x->is_single ? strcmp(x->name, y->name) : strcasecmp(x->name, y->name);
    if (order == 0 && x->is_single)
        order = order_numbers((intptr_t)x->resolver, (intptr_t)y->resolver);
    if (order == 0 && x->is_single)
        order = order_numbers(x->resolver_timeout, y->resolver_timeout);
    return order;
}

RB_GENERATE_INTERNAL(
    upstream_names, upstream_entry, node, compare_entries, static __attribute__((unused)))

struct upstream *upstream_find_like(struct apply *apply, struct upstream *like)
{
    struct upstream_entry wanted = { .upstream = like }, *found;

    found = RB_FIND(upstream_names, &upstream_conf_of(apply)->all, &wanted);
    return found != NULL ? found->upstream : NULL;
}

int upstream_add(struct apply *apply, struct upstream *upstream)
{
    struct upstream_entry *entry = apply_alloc(apply, sizeof(*entry));

    CHECK_KIND(upstream, UPSTREAM_KIND);
    if (entry == NULL)
        return -1;
    entry->upstream = upstream;
    if (RB_INSERT(upstream_names, &upstream_conf_of(apply)->all, entry) != NULL)
        return -1;
    STAILQ_INSERT_TAIL(&apply->cycle->stream.upstreams, upstream, link);
    return 0;
}

struct upstream *upstream_find(struct apply *apply, const char *name)
{
    struct upstream like = { .name = name };

    return upstream_find_like(apply, &like);
}

void upstream_number_names(struct apply *apply)
{
    struct named_upstreams *named = &upstream_conf_of(apply)->named;
    struct upstream_entry *entry;
    uint32_t n = 0;
    int rc = 0;

    assert(named->groups == NULL);
    RB_FOREACH (entry, upstream_names, &upstream_conf_of(apply)->all)
        n++;
    named->groups = apply_alloc(apply, (n + 1) * sizeof(struct upstream *));
    if (named->groups == NULL)
        return;
    n = 0;
    RB_FOREACH (entry, upstream_names, &upstream_conf_of(apply)->all) {
        struct upstream *upstream = entry->upstream;

        if (upstream->is_single || rc == -1)
            continue;
        named->groups[n] = upstream;
        rc = map_table_add(&named->numbers, upstream->name, strlen(upstream->name), n++);
    }
    if (map_table_finish(&named->numbers, apply->cycle->arena) == -1 || rc == -1)
        report_error(apply->report, NULL, "out of memory");
}

const char *upstream_nearest(struct apply *apply, const char *name)
{
    struct nearest near = { .word = name };
    struct upstream_entry *entry;

    RB_FOREACH (entry, upstream_names, &upstream_conf_of(apply)->all)
        if (!entry->upstream->is_single)
            nearest_try(&near, entry->upstream->name);
    return near.found;
}

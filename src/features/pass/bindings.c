/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists bindings sorted by address, and finds a binding by halving. */
#include "features/pass/bindings.h"

#include "settings/apply.h"

#include <assert.h>
#include <stdlib.h>

static int compare_places(const void *a, const void *b)
{
    const struct binding_place *left = a, *right = b;

    return address_compare(&left->binding->address, &right->binding->address);
}

void pass_bindings_sort(struct binding_list *list)
{
    assert(list->places != NULL);
    qsort(list->places, list->n, sizeof(*list->places), compare_places);
}

static const struct binding_place *find_exact(
    const struct binding_list *list, const struct address *address)
{
    struct binding wanted = { .address = *address };
    const struct binding_place place = { .binding = &wanted };

    assert(list->places != NULL && address->length > 0);
    return bsearch(&place, list->places, list->n, sizeof(*list->places), compare_places);
}

static const struct binding_place *find_wildcard(
    const struct binding_list *list, sa_family_t family, in_port_t port)
{
    struct address wide = {
        .length = family == AF_INET ? sizeof(wide.in) : sizeof(wide.in6),
        .any.sa_family = family,
    };

    assert(family == AF_INET || family == AF_INET6);
    address_set_port(&wide, port);
    return find_exact(list, &wide);
}

struct binding *pass_bindings_find(const struct binding_list *list, const struct address *address)
{
    const struct binding_place *found = list->n > 0 ? find_exact(list, address) : NULL;
    sa_family_t family = address->any.sa_family;

    if (found == NULL && list->n > 0 && family != AF_UNIX)
        found = find_wildcard(list, family, address_port(address));
    if (found == NULL && list->n > 0 && family == AF_INET) {
        found = find_wildcard(list, AF_INET6, address_port(address));
        if (found != NULL && !found->takes_ipv4)
            found = NULL;
    }
    return found != NULL ? found->binding : NULL;
}

static unsigned count_bindings(const struct listeners *listeners)
{
    const struct listener *listener;
    const struct binding *binding;
    unsigned n = 0;

    STAILQ_FOREACH (listener, &listeners->list, link)
        STAILQ_FOREACH (binding, &((const struct port *)listener->owner)->bindings, link)
            n++;
    return n;
}

int pass_bindings_list(struct apply *apply, struct binding_list *list)
{
    struct listeners *listeners = &apply->cycle->stream.listeners;
    struct listener *listener;
    struct binding *binding;

    list->places = apply_alloc(apply, (count_bindings(listeners) + 1) * sizeof(*list->places));
    if (list->places == NULL)
        return -1;
    STAILQ_FOREACH (listener, &listeners->list, link)
        STAILQ_FOREACH (binding, &((struct port *)listener->owner)->bindings, link)
            list->places[list->n++] = (struct binding_place) {
                .binding = binding,
                .takes_ipv4 = address_is_wildcard(&binding->address) && !listener->options.ipv6only,
            };
    pass_bindings_sort(list);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the listeners of a set in a tree by address. Two may have one address, of which one port
 * was the kernel's choice: they lie side by side. */
#include "net/listener_set.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

static int compare_listeners(const struct listener *a, const struct listener *b)
{
    int result = address_compare(&a->address, &b->address);

    return result != 0 ? result : ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

RB_GENERATE_INTERNAL(
    listener_tree, listener, node, compare_listeners, static __attribute__((unused)))

void listener_set_init(struct listeners *all)
{
    STAILQ_INIT(&all->list);
    RB_INIT(&all->tree);
}

static void insert(struct listeners *all, struct listener *listener)
{
    const struct listener *same = RB_INSERT(listener_tree, &all->tree, listener);

    assert(same == NULL);
    listener->set = all;
}

void listener_set_add(struct listeners *all, struct listener *listener)
{
    assert(listener->set == NULL);
    STAILQ_INSERT_TAIL(&all->list, listener, link);
    insert(all, listener);
}

void listener_set_move(struct listener *listener, const struct address *address)
{
    struct listeners *all = listener->set;

    if (all != NULL)
        RB_REMOVE(listener_tree, &all->tree, listener);
    listener->address = *address;
    if (all != NULL)
        insert(all, listener);
}

/* Returns the first listener whose address is not before this one. */
static struct listener *first_from(const struct listeners *all, const struct address *address)
{
    struct listener *node = RB_ROOT(&all->tree), *first = NULL;

    while (node != NULL)
        if (address_compare(&node->address, address) < 0) {
            node = RB_RIGHT(node, node);
        } else {
            first = node;
            node = RB_LEFT(node, node);
        }
    return first;
}

struct listener *listener_set_at(const struct listeners *all, const struct address *address)
{
    struct listener *first = first_from(all, address);

    return first != NULL && address_equal(&first->address, address) ? first : NULL;
}

struct listener *listener_set_find(const struct listeners *all, const struct listener *listener)
{
    struct listener *other = listener_set_at(all, &listener->address);

    while (other != NULL && !listener_is_open(other)) {
        other = RB_NEXT(listener_tree, NULL, other);
        if (other != NULL && !address_equal(&other->address, &listener->address))
            return NULL;
    }
    return other;
}

/* Returns the wildcard of the listener's port. All other addresses of the port follow it. */
static struct address wildcard_of(const struct listener *listener)
{
    struct address wildcard;

    memset(&wildcard, 0, sizeof(wildcard));
    wildcard.length = listener->address.length;
    wildcard.any.sa_family = listener->address.any.sa_family;
    address_set_port(&wildcard, address_port(&listener->address));
    return wildcard;
}

static bool has_port_of(const struct listener *other, const struct listener *listener)
{
    return other->address.any.sa_family == listener->address.any.sa_family &&
           address_port(&other->address) == address_port(&listener->address);
}

struct listener *listener_set_overlap(
    const struct listeners *all, const struct listener *listener, const struct listener *after)
{
    bool wide = address_is_wildcard(&listener->address);
    struct address wildcard;
    struct listener *other;

    if (listener->address.any.sa_family == AF_UNIX)
        return NULL;
    if (after != NULL) {
        other = RB_NEXT(listener_tree, NULL, (struct listener *)after);
    } else {
        wildcard = wildcard_of(listener);
        other = first_from(all, &wildcard);
    }
    while (other != NULL && has_port_of(other, listener)) {
        if (listener_overlaps(listener, other))
            return other;
        if (!wide) /* the wildcards are passed */
            return NULL;
        other = RB_NEXT(listener_tree, NULL, other);
    }
    return NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of listeners in a tree by address. Two listeners may have one address, if one port was the
 * kernel's choice.
 *
 * Finds a listener, or the overlapping listeners, among tens of thousands; and sets SO_REUSEPORT on
 * both sockets of an overlapping pair while the second is bound. Never opens or closes a socket.
 * Invariant: a listener is in one set at most, under its present address. */
#include "net/listener_set.h"

#include <assert.h>
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

static void insert_listener(struct listeners *all, struct listener *listener)
{
    const struct listener *same = RB_INSERT(listener_tree, &all->tree, listener);

    assert(same == NULL);
    listener->set = all;
}

void listener_set_add(struct listeners *all, struct listener *listener)
{
    assert(listener->set == NULL);
    STAILQ_INSERT_TAIL(&all->list, listener, link);
    insert_listener(all, listener);
}

void listener_set_move(struct listener *listener, const struct address *address)
{
    struct listeners *all = listener->set;

    if (all != NULL)
        RB_REMOVE(listener_tree, &all->tree, listener);
    listener->address = *address;
    if (all != NULL)
        insert_listener(all, listener);
}

/* Returns the first listener at or after this address; with `exactly` only at the address. */
static struct listener *first_listener_from(
    const struct listeners *all, const struct address *address, bool exactly)
{
    struct listener *node = RB_ROOT(&all->tree), *first = NULL;

    while (node != NULL) {
        int order = address_compare(&node->address, address);

        if (order == 0 || (order > 0 && !exactly))
            first = node;
        node = order < 0 ? RB_RIGHT(node, node) : RB_LEFT(node, node);
    }
    return first;
}

struct listener *listener_set_at(const struct listeners *all, const struct address *address)
{
    return first_listener_from(all, address, true);
}

struct listener *listener_set_find(const struct listeners *all, const struct listener *listener)
{
    struct listener *other = first_listener_from(all, &listener->address, true);

    while (other != NULL && !listener_is_open(other)) {
        other = RB_NEXT(listener_tree, NULL, other);
        if (other != NULL && !address_equal(&other->address, &listener->address))
            return NULL;
    }
    return other;
}

bool listener_set_overlaps(const struct listener *a, const struct listener *b)
{
    return a->address.any.sa_family == b->address.any.sa_family && !listener_is_unix(a) &&
           address_port(&a->address) == address_port(&b->address) &&
           address_is_wildcard(&a->address) != address_is_wildcard(&b->address);
}

struct listener *listener_set_overlap(
    const struct listeners *all, const struct listener *listener, const struct listener *after)
{
    bool wide = address_is_wildcard(&listener->address);
    sa_family_t family = listener->address.any.sa_family;
    struct address wildcard;
    struct listener *other;

    if (listener_is_unix(listener))
        return NULL;
    if (after != NULL) {
        other = RB_NEXT(listener_tree, NULL, (struct listener *)after);
    } else {
        /* the port's wildcard; other addresses follow */
        address_make(
            &wildcard, family, (const uint8_t[16]) { 0 }, address_port(&listener->address));
        other = first_listener_from(all, &wildcard, false);
    }
    while (other != NULL && other->address.any.sa_family == family &&
           address_port(&other->address) == address_port(&listener->address)) {
        if (listener_set_overlaps(listener, other))
            return other;
        if (!wide) /* the wildcards are passed */
            return NULL;
        other = RB_NEXT(listener_tree, NULL, other);
    }
    return NULL;
}

/* Allows further sockets on the port, or no more. */
static void allow_others(const struct listener *listener, bool allow)
{
    int value = allow || listener->options.reuseport;

    /* several sockets have the option anyway; a failure shows in the next bind() or listen() */
    if (listener->fd_n == 1 && listener->fds[0] != -1)
        setsockopt(listener->fds[0], SOL_SOCKET, SO_REUSEPORT, &value, sizeof(value));
}

void listener_set_allow(const struct listeners *others, const struct listener *listener, bool allow)
{
    const struct listener *other = listener_set_overlap(others, listener, NULL);

    for (; other != NULL; other = listener_set_overlap(others, listener, other)) {
        allow_others(other, allow);
        allow_others(listener, allow);
    }
}

void listener_set_allow_all(const struct listeners *listeners, const struct listeners *live,
    const struct listeners *previous, bool allow)
{
    const struct listeners *const all[] = { listeners, live, previous };
    const struct listener *other;
    struct listener *listener;

    assert(listeners != NULL);
    STAILQ_FOREACH (listener, &listeners->list, link) {
        if (!allow && !listener->beside)
            continue;
        if ((live != NULL && listener_set_find(live, listener) != NULL) ||
            (previous != NULL && listener_set_find(previous, listener) != NULL))
            continue; /* adopts the sockets */
        for (size_t i = 0; i < countof(all); i++) {
            other = all[i] != NULL ? listener_set_overlap(all[i], listener, NULL) : NULL;
            for (; other != NULL; other = listener_set_overlap(all[i], listener, other)) {
                listener->beside = allow;
                allow_others(other, allow);
                if (!allow)
                    allow_others(listener, false);
            }
        }
    }
}

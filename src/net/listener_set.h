/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of listeners: those of a configuration, or the holders of adopted sockets. */
#pragma once

#include "net/listener.h"

void listener_set_init(struct listeners *all);
/* Adds a listener at the end. It stays in the set as long as both live. */
void listener_set_add(struct listeners *all, struct listener *listener);
/* Returns the first listener of this address, open or not, or NULL. */
struct listener *listener_set_at(const struct listeners *all, const struct address *address);
/* Returns a listener with the same address and open sockets, which `listener` can adopt; or
 * NULL. */
struct listener *listener_set_find(const struct listeners *all, const struct listener *listener);
/* Returns the first listener after `after` (NULL: of all) that overlaps with `listener`, or
 * NULL. */
struct listener *listener_set_overlap(
    const struct listeners *all, const struct listener *listener, const struct listener *after);
/* Gives a listener, in a set or not, another address. */
void listener_set_move(struct listener *listener, const struct address *address);

/* Whether both have one port and one of them is a wildcard, which includes the other's address: the
 * kernel lets the second be bound and listen only where both allow it. */
bool listener_set_overlaps(const struct listener *a, const struct listener *b);
/* Lets a listener be bound to its port beside overlapping ones of `others`, or no more. */
void listener_set_allow(
    const struct listeners *others, const struct listener *listener, bool allow);
/* Allows listeners that are bound for the first time to overlap with each other and with `live` and
 * `previous`, whose sockets are adopted (NULL: none). Called with `allow` before `listeners` are
 * opened, and without it when all listen or are given up: then no other socket may be bound beside
 * them. */
void listener_set_allow_all(const struct listeners *listeners, const struct listeners *live,
    const struct listeners *previous, bool allow);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of listeners: those of a configuration, or the holders of adopted sockets. */
#pragma once

#include "net/listener.h"

void listener_set_init(struct listeners *all);
/* Adds a listener at the end. It stays in the set as long as both live. */
void listener_set_add(struct listeners *all, struct listener *listener);
/* Returns the address's first listener, open or not, or NULL. */
struct listener *listener_set_at(const struct listeners *all, const struct address *address);
/* Returns a listener with an equal address and open sockets, for `listener` to adopt; or NULL. */
struct listener *listener_set_find(const struct listeners *all, const struct listener *listener);
/* Returns the first overlapping listener after `after` (NULL: of all), or NULL. */
struct listener *listener_set_overlap(
    const struct listeners *all, const struct listener *listener, const struct listener *after);
/* Changes a listener's address, in a set or not. */
void listener_set_move(struct listener *listener, const struct address *address);
/* Whether one of two listeners on a port is a wildcard: the kernel wants both to allow so. */
bool listener_set_overlaps(const struct listener *a, const struct listener *b);
/* Lets a listener be bound beside overlapping listeners of `others`, or no more. */
void listener_set_allow(
    const struct listeners *others, const struct listener *listener, bool allow);
/* Lets new listeners overlap among themselves, with `live` and with `previous`, the holders (NULL:
 * none). With `allow` before the open; without it when all listen or are given up. */
void listener_set_allow_all(const struct listeners *listeners, const struct listeners *live,
    const struct listeners *previous, bool allow);

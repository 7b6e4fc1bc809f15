/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of listeners: those of a configuration, or the holders of adopted sockets.
 *
 * Responsible for finding one of tens of thousands by its address, and those that overlap with it,
 * without looking at the others. Never opens or closes a socket. Invariant: a listener is in one
 * set at most, under the address that it has. */
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

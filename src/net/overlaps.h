/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners that overlap: a wildcard and another address of its port, each with a socket of its
 * own.
 *
 * Responsible for having both allow the other (SO_REUSEPORT) while the second is bound and begins
 * to listen, which the kernel wants, and for taking that back. Never binds or closes a socket. */
#pragma once

#include "net/listener.h"

/* Allows listeners that are bound for the first time to overlap with each other and with `live` and
 * `previous`, whose sockets are adopted (NULL: none). Called with `allow` before `listeners` are
 * opened, and without it when all listen or are given up: then no other socket may be bound beside
 * them. */
void overlaps_allow(const struct listeners *listeners, const struct listeners *live,
    const struct listeners *previous, bool allow);

/* SPDX-License-Identifier: BSD-2-Clause */
/* A wildcard and another address of its port, each with a socket of its own: the kernel has the second
 * bound and listen only while both allow it. */
#pragma once

#include "net/listener.h"

/* Before `listeners` are opened: what is bound for the first time may overlap with its like, and with
 * those of which sockets are taken over, `live` and `lenders` (or NULL). With `allow` off, when all
 * listen or are given up: nobody else may any more. */
void fb_overlaps_allow(const struct fb_listeners *listeners, const struct fb_listeners *live,
    const struct fb_listeners *lenders, bool allow);

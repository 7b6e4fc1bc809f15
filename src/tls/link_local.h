/* SPDX-License-Identifier: BSD-2-Clause */
/* A link to an engine in this process: without a master, under the simulated kernel, in tests. */
#pragma once

#include "tls/link.h"

/* Makes a link to an engine that lives longer; NULL without memory. */
struct tls_link *tls_link_create_local(
    struct loop *loop, const struct tls_engine_ops *ops, struct tls_engine *engine);
/* For simulations: requests wait while they are held; or all handshakes under way fail in the next
 * turn, as when a keeper dies. */
void tls_link_hold_local(struct tls_link *link, bool holds);
void tls_link_lose_local(struct tls_link *link);

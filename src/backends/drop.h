/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of sessions of servers out of use: `proxy_session_drop`.
 *
 * Responsible for polling the servers of watched sessions while there are any, and for ending
 * the sessions at once, or spread over time. Costs unwatched sessions nothing. Invariant: while
 * a try is watched, the stream's timer `drop` is set. */
#pragma once

#include "backends/tries.h"

/* Returns the setting of the session's group, or else of the session's server. */
static inline const struct upstream_drop *backend_drop_of(
    const struct session_tries *tries, const struct server *server)
{
    const struct upstream_drop *drop = &tries->choice.upstream->drop;

    return drop->way != UPSTREAM_DROP_UNSET ? drop : &server->settings.drop;
}

/* Watches the server of the begun try, unless the server's state cannot change. */
void backend_drop_watch(struct session_tries *tries);

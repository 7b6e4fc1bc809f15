/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of sessions whose server is not to be used any more: `proxy_session_drop`.
 *
 * Responsible for looking at the servers of such sessions while there are any, and for ending the
 * sessions at once, or each at a time of its own. Costs other sessions nothing. Invariant: while a
 * try is watched, the stream's timer `drop` is set. */
#pragma once

#include "backends/tries.h"

/* Returns the setting of the session's group, or else of its server. */
static inline const struct upstream_drop *backend_drop_of(
    const struct session_tries *tries, const struct server *server)
{
    const struct upstream_drop *drop = &tries->choice.upstream->drop;

    return drop->way != UPSTREAM_DROP_UNSET ? drop : &server->settings.drop;
}

/* Watches the server of the try that has begun, unless that cannot change. */
void backend_drop_watch(struct session_tries *tries);

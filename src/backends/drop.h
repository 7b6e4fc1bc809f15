/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of sessions whose server is not to be used any more: `proxy_session_drop`.
 *
 * Responsible for looking at the servers of such sessions while there are any, and for ending the
 * sessions at once, or each at a time of its own. Costs other sessions nothing. Invariant: while a
 * try is watched, the stream's timer `drop` is set. */
#pragma once

#include "backends/tries.h"
#include "base/compiler.h"

/* Returns the setting of the session's group, or else of its server. */
static inline const struct upstream_drop *backend_drop_of(const struct session_tries *tries)
{
    const struct upstream_drop *drop = &tries->choice.upstream->drop;

    return drop->way != UPSTREAM_DROP_UNSET ? drop
                                            : &session_server_of(tries->client)->settings.drop;
}

/* Watches the server of the try that has begun, unless that cannot change. */
void backend_drop_watch(struct session_tries *tries);
/* Does so if the session is to end with its server. */
static inline void backend_drop_begin(struct session_tries *tries)
{
    if (unlikely(backend_drop_of(tries)->way == UPSTREAM_DROP_ON))
        backend_drop_watch(tries);
}

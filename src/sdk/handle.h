/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles: every call of the SDK on a connection first asks here whether the connection's protocol
 * may still use the connection. An ended handle is reported as the protocol's mistake as long as
 * the slot is free, and the call then does nothing. */
#pragma once

#include "base/compiler.h"
#include "session/conn.h"
#include "worker/worker.h"

#include <assert.h>

/* Whether the call, named for the report, may go on. */
#define SDK_VALID(conn) SDK_VALID_FOR(conn, __func__)
#define SDK_VALID_FOR(conn, call)                                                                  \
    (likely(((conn)->session_phase & SESSION_USABLE) != 0) ||                                      \
        (sdk_handle_report(conn, call), false))

/* Reports the mistake to the stream's owner, or else to the log. */
void sdk_handle_report(const fb_conn *conn, const char *call);

static inline struct worker *sdk_worker_of(const fb_conn *conn)
{
    return container_of(stream_of(conn), struct worker, stream);
}

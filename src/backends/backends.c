/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of operations of connections to servers, for sessions below. */
#include "backends/chain.h"
#include "backends/connect.h"
#include "backends/keepalive.h"
#include "backends/tries.h"
#include "backends/trunk.h"

static void check_backend_conn(const struct fb_conn *conn)
{
    const struct session_conn *session = conn->session;
    const struct session_tries *tries = conn->outgoing ? NULL : session_tries_of(conn);

    assert((conn->session_phase == SESSION_KEEPALIVE) == (keepalive_has(conn) && session != NULL));
    if (conn_is_owned(conn) && conn->ends_stopped && conn_is_active(conn))
        assert(tries != NULL && choice_waits(&tries->choice));
    if (conn_is_owned(conn) && tries != NULL && tries->choice.is_watched)
        assert(timer_is_set(&stream_of(conn)->drop));
}

const struct session_backends backends_ops = {
    .tries_size = sizeof(struct session_tries),
    .try_size = sizeof(struct session_try),
    .begin = chain_begin,
    .chosen = chain_check,
    .keepalive = keepalive_put,
    .connect_again = backend_connect_again,
    .connect_failed = backend_connect_failed,
    .connect_expired = backend_connect_expired,
    .describe = tries_describe,
    .first_byte = tries_server_first_byte,
    .last_end = tries_last_end,
    .clear_tries = tries_clear,
    .leave_trunk = trunk_leave,
    .close_all = keepalive_close_all,
    .evict = keepalive_evict,
    .check_conn = check_backend_conn,
    .check = trunk_check_all,
};

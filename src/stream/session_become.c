/* SPDX-License-Identifier: BSD-2-Clause */
/* Other callbacks for a connection in its middle: after an upgrade, STARTTLS or CONNECT.
 *
 * Responsible for what of the connection belongs to the callbacks that leave it, and for offering
 * the input that they have not consumed to the new ones. Never calls a protocol. Invariant: a
 * client whose session has operations of its own has had those of its protocol before. */
#include "stream/session_conn.h"

int session_become(struct fb_conn *conn, const fb_ops *ops, void *state)
{
    struct session_conn *session;

    assert(ops != NULL && conn_is_owned(conn) && !session_is_keepalive(conn));
    if (conn->phase == CONN_ENDING) /* `closed` is running */
        return -1;
    session = session_conn_make(conn);
    if (session == NULL)
        return -1;
    if (conn->outgoing && session->first_ops == NULL)
        session->first_ops = session->ops;
    if (!conn->outgoing && session->ops == NULL)
        stream_of(conn)->became_n++;
    session_timers_clear(session);
    session_reads_clear(session);
    names_cancel_owned(&session->resolutions);
    frame_forget(session);
    session->ops = ops;
    session->has_become = true;
    conn->state = state;
    if (stream_of(conn)->draining)
        stream_drain_late(conn);
    conn_offer_again(conn);
    return 0;
}

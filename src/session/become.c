/* SPDX-License-Identifier: BSD-2-Clause */
/* Other callbacks for a connection in its middle: after an upgrade, STARTTLS or CONNECT.
 *
 * Responsible for what of the connection belongs to the callbacks that leave it, and for offering
 * the input that they have not consumed to the new ones. Never calls a protocol. Invariant: a
 * client whose session has operations of its own has had those of its protocol before. */
#include "session/reuse.h"
#include "session/use.h"

/* Notes with which operations a connection to a server was made; -1 without memory. */
static int keep_first_ops(struct fb_conn *conn, struct session_conn *session)
{
    struct session_reuse *reuse = session_reuse_make(stream_of(conn), session);

    if (reuse == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return -1;
    }
    if (reuse->first_ops == NULL)
        reuse->first_ops = session->ops;
    return 0;
}

/* Forgets what the callbacks that leave wait for. */
static void forget_use(struct session_use *use)
{
    session_timers_clear(use);
    session_reads_clear(use);
    names_cancel_owned(&use->resolutions);
    frame_forget(use);
}

int session_become(struct fb_conn *conn, const fb_ops *ops, void *state)
{
    struct session_use *use = session_use_of(conn);
    struct session_conn *session;

    assert(ops != NULL && session_is_usable(conn));
    if (conn->phase == CONN_ENDING) /* `closed` is running */
        return -1;
    session = session_conn_make(conn);
    if (session == NULL)
        return -1;
    if (conn->outgoing && keep_first_ops(conn, session) == -1)
        return -1;
    if (!conn->outgoing && session->ops == NULL)
        stream_of(conn)->became_n++;
    if (use != NULL)
        forget_use(use);
    session->ops = ops;
    session->has_become = true;
    session->told = false;
    conn->state = state;
    if (stream_of(conn)->draining)
        stream_drain_late(conn);
    conn_offer_again(conn);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* How a client's session has ended, as $session_end says: the cause that was noted first, or else
 * what the reason of the connection's end, and the session's last try, stand for. */
#pragma once

#include "session/conn.h"

enum session_end {
    SESSION_END_NONE, /* before the end */
#define SESSION_END(id, text) SESSION_END_##id,
#include "session/end.def"
#undef SESSION_END
    SESSION_ENDS,
};
static_assert(SESSION_ENDS <= 64, "a cause has six bits");

/* Notes why a session is going to end, unless a cause was noted before. Of a connection to a server
 * nothing is noted. */
static inline void session_end_note(struct fb_conn *conn, enum session_end end)
{
    struct session_conn *session = conn->outgoing ? NULL : session_conn_make(conn);

    assert(end > SESSION_END_NONE && end < SESSION_ENDS);
    if (session != NULL && session->end == SESSION_END_NONE)
        session->end = end;
}
/* Returns how the last try of a client has ended its session, if it has. */
enum session_end session_end_of_tries(const struct fb_conn *client);
/* Finds out how the session of a client has ended, whose connection ends for this reason. */
void session_end_conclude(struct fb_conn *client, fb_reason reason);

/* Returns the cause of the client's session's end, as $session_end has it; NULL before that. */
const char *session_end_text(const struct fb_conn *client);

/* SPDX-License-Identifier: BSD-2-Clause */
/* How a client's session has ended, for $session_end: the cause noted first, or else the cause
 * derived from the reason of the connection's end, and from the session's last try. */
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

/* Notes why a client's session is going to end, unless a cause was noted before. */
static inline void session_end_note(struct fb_conn *conn, enum session_end end)
{
    struct session_conn *session = conn->outgoing ? NULL : session_conn_make(conn);

    assert(end > SESSION_END_NONE && end < SESSION_ENDS);
    if (session != NULL && session->end == SESSION_END_NONE)
        session->end = end;
}
/* Returns how the last try of a client has ended the session, if at all. */
enum session_end session_end_of_tries(const struct fb_conn *client);
/* Returns the cause of the end of a client's session: the one noted, or derived from `reason`, for
 * which the connection ends. */
enum session_end session_end_of(const struct fb_conn *client, fb_reason reason);
/* Notes that cause. */
void session_end_conclude(struct fb_conn *client, fb_reason reason);

/* Texts of causes; NULL of SESSION_END_NONE. */
extern const char *const session_end_names[SESSION_ENDS];
/* Returns the cause of the end of the client's session, for $session_end; NULL before the end. */
const char *session_end_text(const struct fb_conn *client);

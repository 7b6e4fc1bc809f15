/* SPDX-License-Identifier: BSD-2-Clause */
/* The causes of sessions' ends: texts, notes and conclusions. */
#include "session/end.h"

#include "base/compiler.h"
#include "session/server.h"

const char *const session_end_names[SESSION_ENDS] = {
#define SESSION_END(id, text) [SESSION_END_##id] = (text),
#include "session/end.def"
#undef SESSION_END
};

static const uint8_t ends_by_reason[] = {
    [FB_FINISHED] = SESSION_END_FINISHED,
    [FB_PEER_GONE] = SESSION_END_CLIENT_EOF,
    [FB_RESET] = SESSION_END_CLIENT_RESET,
    [FB_TIMED_OUT] = SESSION_END_TIMEOUT,
    [FB_INPUT_LIMIT] = SESSION_END_INPUT_LIMIT,
    [FB_ABORTED] = SESSION_END_ABORTED,
    [FB_DRAINED] = SESSION_END_SHUTDOWN,
    [FB_REFUSED] = SESSION_END_REFUSED,
    [FB_NO_MEMORY] = SESSION_END_NO_MEMORY,
    [FB_IO_ERROR] = SESSION_END_CLIENT_RESET,
    [FB_BAD_FRAME] = SESSION_END_BAD_INPUT,
    [FB_OUTPUT_LIMIT] = SESSION_END_OUTPUT_LIMIT,
    [FB_PIPE_BROKEN] = SESSION_END_ABORTED,
    [FB_TLS_FAILED] = SESSION_END_TLS_FAILED,
    [FB_TLS_TIMED_OUT] = SESSION_END_TIMEOUT,
};

enum session_end session_end_of_tries(const struct fb_conn *client)
{
    const struct session_tries *tries = session_tries_of(client);

    if (tries == NULL)
        return SESSION_END_NONE;
    return (enum session_end)stream_of(client)->backends->last_end(tries);
}

/* Returns the cause of an end not made by the client: the servers, or our error. */
static enum session_end cause_of_close(const struct fb_conn *client, enum session_end otherwise)
{
    enum session_end end = session_end_of_tries(client);

    if (end != SESSION_END_NONE)
        return end;
    return session_status(client) == STATUS_INTERNAL ? SESSION_END_ERROR : otherwise;
}

enum session_end session_end_of(const struct fb_conn *client, fb_reason reason)
{
    const struct session_conn *session = client->session;
    enum session_end end;

    if (session != NULL && session->end != SESSION_END_NONE)
        return (enum session_end)session->end;
    assert(reason >= FB_FINISHED && (size_t)reason < countof(ends_by_reason));
    end = (enum session_end)ends_by_reason[reason];
    if (reason == FB_FINISHED || reason == FB_PIPE_BROKEN)
        end = cause_of_close(client, end);
    else if (reason == FB_TIMED_OUT && session_status(client) == STATUS_TOO_SLOW)
        end = SESSION_END_TOO_SLOW;
    return end;
}

void session_end_conclude(struct fb_conn *client, fb_reason reason)
{
    session_end_note(client, session_end_of(client, reason));
}

const char *session_end_text(const struct fb_conn *client)
{
    const struct session_conn *session = client->session;

    return session != NULL && !client->outgoing ? session_end_names[session->end] : NULL;
}

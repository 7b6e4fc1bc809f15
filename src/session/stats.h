/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts clients, and their bytes, in the statistics of the `listen` that they came by. */
#pragma once

#include "session/end.h"
#include "session/server.h"

/* The worker, before the first client: finds its numbers in the zone, if that is open. */
void session_stats_open(const struct stream_settings *settings, uint32_t slot);

/* Count a client that was accepted, or ends: with its cause, SESSION_END_NONE for a client that a
 * server of another entry takes over. */
void session_stats_accept(struct fb_conn *client);
void session_stats_end(struct fb_conn *client, enum session_end end);
/* Counts bytes from now on, and those of the session so far, for the server that has the client;
 * the bytes of headers and handshakes before are not counted. */
void session_stats_begin(struct fb_conn *client);

/* Bytes of a session, before a handshake in its midst. */
struct session_stats_mark {
    uint64_t received, sent;
};

/* Stop counting bytes while others than the session's come, and go on with those that were. */
void session_stats_pause(struct fb_conn *conn, struct session_stats_mark *mark);
void session_stats_resume(struct fb_conn *conn, const struct session_stats_mark *mark);

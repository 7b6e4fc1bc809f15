/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts clients and bytes in the statistics of a `listen`. */
#pragma once

#include "session/end.h"
#include "session/server.h"

/* The worker, before the first client: finds the numbers in an open zone. */
void session_stats_open(const struct stream_settings *settings, uint32_t slot);

/* Count an accepted client, and the client's end: by cause, or SESSION_END_NONE when a server of a
 * second entry gets the client. */
void session_stats_accept(struct fb_conn *client);
void session_stats_end(struct fb_conn *client, enum session_end end);
/* Counts bytes for the client's server: of the session so far, and from now on; bytes of headers
 * and handshakes are not counted. */
void session_stats_begin(struct fb_conn *client);

/* Bytes of a session before a handshake. */
struct session_stats_mark {
    uint64_t received, sent;
    struct stats_traffic *traffic;
};

/* Stop counting during a handshake, and count the session's bytes since the mark. */
void session_stats_pause(struct fb_conn *conn, struct session_stats_mark *mark);
void session_stats_resume(struct fb_conn *conn, const struct session_stats_mark *mark);

/* Return the names of the numbers of ends and troubles, for users; NULL: unused. */
const char *session_stats_end_name(unsigned end);
const char *session_stats_try_end_name(unsigned end);
const char *session_stats_wait_end_name(unsigned end);
const char *session_stats_trouble_name(unsigned trouble);

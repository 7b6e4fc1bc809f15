/* SPDX-License-Identifier: BSD-2-Clause */
/* The phases of a session around the protocol: decide whether a client is served, and note the
 * outcome. Data of a server's; session.c runs the handlers. */
#pragma once

struct fb_conn;

/* In the order of a session. The protocol serves between the last two. */
enum stream_phase {
    PHASE_POST_ACCEPT,
    PHASE_PREACCESS,
    PHASE_ACCESS,
    PHASE_PREREAD, /* the handler holds the session up; no later phase may */
    PHASE_LOG,
    STREAM_PHASES
};

struct phase_handler {
    struct phase_handler
        *next; /* the next of the server, in the order of phases, and of addition */
    enum stream_phase phase;
    /* Before the protocol has the client: 0 to go on, or the status with which the session ends. In
     * PHASE_LOG the session has ended but for the protocol's `closed`, and the result is 0. */
    unsigned (*run)(struct fb_conn *conn, const void *arg);
    const void *arg;
};

/* Statuses of sessions, as $status shows them. */
#define STATUS_OK 200
#define STATUS_BAD_REQUEST 400
#define STATUS_FORBIDDEN 403
#define STATUS_TOO_SLOW 408
#define STATUS_INTERNAL 500
#define STATUS_BAD_GATEWAY 502
#define STATUS_UNAVAILABLE 503

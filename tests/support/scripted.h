/* SPDX-License-Identifier: BSD-2-Clause */
/* A server with a protocol that acts by the test's script and records its events. Made by hand,
 * without a configuration: all settings are zero, meaning "off". */
#pragma once

#include "session/session.h"

#define SCRIPTED_STATE 40 /* bytes a connection */

struct fixture;

struct scripted_record {
    unsigned openings, datas, eofs, writables, closings;
    fb_reason reason;
    char last[256]; /* the beginning of the latest input */
    fb_conn *conn;  /* the latest */
    void *state;
};

/* The server's configuration, as seen by the protocol: actions of the callbacks besides recording.
 * NULL: nothing, consume everything, close at the end. */
struct scripted_calls {
    int (*opened)(fb_conn *conn, void *state);
    size_t (*data)(fb_conn *conn, void *state, fb_bytes in);
    void (*eof)(fb_conn *conn, void *state, fb_bytes rest);
    void (*writable)(fb_conn *conn, void *state);
    void (*closed)(fb_conn *conn, void *state, fb_reason reason);
    struct scripted_record *record;
};

struct scripted_server {
    fb_protocol protocol; /* may be changed before its first session */
    fb_ops ops;           /* may be changed before its first session */
    struct scripted_calls script;
    struct scripted_record record;
    struct server server;
    struct binding binding;
    struct port port;
};

void scripted_server_init(struct scripted_server *server, const char *address);
/* `data` that writes everything back. */
size_t scripted_echo(fb_conn *conn, void *state, fb_bytes in);
/* `opened` that stops the connection. */
int scripted_stop(fb_conn *conn, void *state);

/* Starts a session of the fixture's server and lets it open; the second has a client that takes
 * only so many bytes. */
struct sim_socket *scripted_connect(struct fixture *fixture);
struct sim_socket *scripted_connect_slow(struct fixture *fixture, size_t room);
/* Ends the open sessions, and takes the log lines. */
void scripted_end_sessions(struct fixture *fixture);

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of sessions share: a server of the simulated kernel with a protocol of the tests'
 * own, whose calls do what the test says and are recorded. */
#pragma once

#include "stream/session.h"
#include "support/fake.h"
#include "support/test.h"
#include "worker/worker.h"

#define STAGE_STATE 40 /* bytes a connection */

/* The server's configuration, as the protocol sees it. */
struct script {
    int (*opened)(fb_conn *conn, void *state);
    size_t (*data)(fb_conn *conn, void *state, fb_bytes in);
    void (*eof)(fb_conn *conn, void *state, fb_bytes rest);
    void (*writable)(fb_conn *conn, void *state);
    void (*closed)(fb_conn *conn, void *state, fb_reason reason);
    struct record *record;
};

struct record {
    unsigned openings, datas, eofs, writables, closings;
    fb_reason reason;
    char last[256];
    fb_conn *conn; /* the latest */
    void *state;
};

struct stage {
    struct fb_worker worker; /* the first member */
    struct log log;
    struct log_target target;
    char text[16384];
    struct shared *shared;
    struct slot_id slot;
    fb_protocol protocol; /* may be changed before its first session */
    fb_ops ops;           /* ... too */
    struct script script;
    struct record record;
    struct server server;
    struct binding binding;
    struct port port;
};

/* With room for n connections, by default without timeouts; and on another mechanism. */
struct stage *stage_set_up(uint32_t n);
struct stage *stage_with(const struct mechanism *mechanism, uint32_t n);
/* Fails if a line was logged that no test has asked for, or a connection is left. */
void stage_tear_down(struct stage *stage);
/* What was logged since the last time. */
const char *stage_logged(struct stage *stage);

/* A session of the server, opened; and one whose client takes only so many bytes. */
struct fake_socket *stage_connect(struct stage *stage);
struct fake_socket *stage_connect_slow(struct stage *stage, size_t room);
/* Turns until nothing is left to do; and the same after time has passed. */
void stage_run(struct stage *stage);
void stage_pass(struct stage *stage, uint64_t ms);
/* Ends what is open, and forgets the lines that say so. */
void stage_end(struct stage *stage);

const char *stage_sent(const struct fake_socket *socket);

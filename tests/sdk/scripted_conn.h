/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections driven by the test's scripts, with recorded events, on a whole worker: the test
 * kit's. Between turns a test makes the calls of a callback, and ends them with
 * scripted_settle(). */
#pragma once

#include "kit/kit.h"
#include "support/test.h"

#include <forkbeard/test.h>

#define SERVER "10.0.0.1:80"
#define ENDED_MAX 4096

/* A session's state of one connection. */
struct scripted_conn {
    /* callbacks, besides recording; NULL: nothing, consume everything, close at the end */
    int (*opened)(struct scripted_conn *script);
    size_t (*data)(struct scripted_conn *script, fb_bytes in);
    void (*eof)(struct scripted_conn *script, fb_bytes rest);
    void (*writable)(struct scripted_conn *script);
    void (*unwritable)(struct scripted_conn *script);
    void (*timer)(struct scripted_conn *script, uint32_t id);
    void (*draining)(struct scripted_conn *script, uint64_t deadline);
    int (*message)(struct scripted_conn *script, fb_ref from, fb_bytes message);
    void (*answered)(struct scripted_conn *script, uint64_t number, fb_outcome outcome);
    void (*closed)(struct scripted_conn *script, fb_reason reason);
    struct scripted_conn *other; /* for the callbacks */
    uint64_t n;                  /* for the callbacks */
    char letter;                 /* in the order of ends; 0: none */
    /* the record */
    fb_conn *conn; /* NULL once it has been closed */
    unsigned openings, datas, eofs, timers, drainings, messages, answers, closings, writables,
        unwritables;
    fb_reason reason;
    uint32_t timer_id;
    uint64_t deadline, number;
    fb_outcome outcome;
    fb_ref from;
    char last[64]; /* the beginning of the latest input or message */
    size_t last_n;
};

extern const fb_protocol fb_protocol_scripted;
/* For fb_connect(), with a struct scripted_conn. The second table has the same operations at
 * another address. */
extern const fb_ops scripted_conn_ops, scripted_conn_other_ops;

/* The letters of those that have ended. */
extern char ended[ENDED_MAX];

/* A worker with silent clients. */
fb_test *scripted_start(void);
/* The same with further directives of the server behind "scripted;". */
fb_test *scripted_start_with(const char *others);
/* Makes blocks hold several pieces of memory, and be used again, as in the daemon. */
void scripted_share_blocks(fb_test *test);
/* Fails if there were faults, already printed. */
void scripted_finish(fb_test **test);
/* Runs the consequences of calls made between turns. */
void scripted_settle(fb_test *test);

/* Connects a client of the connection `script`, and waits until the connection has opened. */
fb_test_peer *scripted_conn_open(fb_test *test, struct scripted_conn *script);
/* Starts a worker with the directives and connects a client, whose end of input is ignored. */
fb_test *scripted_start_client(
    const char *others, struct scripted_conn *script, fb_test_peer **peer);
/* A connection to SERVER, already accepted; NULL as by fb_connect(). */
fb_test_peer *scripted_conn_connect(
    fb_test *test, struct scripted_conn *owner, struct scripted_conn *script);
/* Only the call: fb_connect() to an address, with the consequences still to come. */
fb_conn *scripted_conn_begin(
    struct scripted_conn *owner, struct scripted_conn *script, const char *address);

/* Returns the bytes received by the peer, as a string. */
const char *peer_heard(fb_test_peer *peer);
/* `data` that leaves everything, `eof` that does nothing. */
size_t scripted_leave_input(struct scripted_conn *script, fb_bytes in);
void scripted_ignore_eof(struct scripted_conn *script, fb_bytes rest);
uint64_t mono_ms(fb_test *test);

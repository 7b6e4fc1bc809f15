/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of connections share: connections of the simulated kernel, whose owners record
 * what they are told and do what the test says. */
#pragma once

#include "net/conn.h"
#include "support/fake.h"
#include "support/test.h"

/* Both kinds of events, for tests that are run for each with _i. */
extern const struct mechanism *const bed_mechanisms[];
#define BED_MECHANISMS 2

struct bed {
    struct net net; /* the first member */
    struct log log;
    struct log_target target;
    struct counters counters;
    char text[16384];
    bool inside; /* a callback is running */
    unsigned released;
    struct memory memory;
    unsigned blocks;        /* that are taken from it */
    unsigned until_failure; /* allocations that succeed before all fail; UINT_MAX: none does */
    unsigned failures;
};

/* An owner of one connection. */
struct owner {
    struct bed *bed;
    struct fb_conn *conn; /* NULL once it has been closed */
    struct fake_socket *socket;
    bool outgoing; /* `opened` may never come */
    /* What it does, besides recording. NULL: nothing, consume everything, close at the end. */
    void (*opened)(struct owner *owner);
    size_t (*data)(struct owner *owner, fb_bytes in);
    void (*eof)(struct owner *owner, fb_bytes rest);
    void (*writable)(struct owner *owner);
    void (*expired)(struct owner *owner);
    void (*closed)(struct owner *owner);
    struct owner *other; /* for what it does */
    size_t n;            /* ... too */
    /* What it has been told. */
    unsigned openings, datas, eofs, writables, moves, expirations, closings;
    fb_reason reason;
    char last[256]; /* the bytes of the latest `data` or `eof` */
    size_t last_n;
    const uint8_t *last_p;
};

struct bed *bed_set_up(const struct mechanism *mechanism, uint32_t connections);
/* Fails if a line was logged that no test has asked for, a connection is still open, or a gauge has
 * not returned to zero. */
void bed_tear_down(struct bed *bed);
/* What was logged since the last time. */
const char *bed_logged(struct bed *bed);
uint64_t bed_count(const struct bed *bed, enum counter counter);

/* A connection on a socket of its own; `opened` has run. Freed with bed_free(). */
struct owner *bed_open(struct bed *bed);
/* The same with the callbacks of `like`, and not yet opened. */
struct owner *bed_create(struct bed *bed, const struct owner *like);
/* A server, at 192.0.2.9:80, and a connection to it. Its socket is known when the server has
 * accepted it: bed_accept(). */
struct sim_server *bed_server(void);
struct owner *bed_connect(struct bed *bed, const struct owner *like);
struct owner *bed_accept(struct sim_server *server, struct owner *owner);
/* Fails if it has not been closed, or not exactly once for its opening. */
void bed_free(struct owner **owner);

/* One turn in which no time passes. */
void bed_turn(struct bed *bed);
/* Turns until nothing is left to do; fails when there is no end to it. */
void bed_run(struct bed *bed);
/* Time passes, in which timers expire. */
void bed_pass(struct bed *bed, uint64_t ms);

/* Blocks of memory that connections hold. */
unsigned bed_held(const struct bed *bed);

/* All that was sent, as a string. */
const char *bed_sent(const struct owner *owner);

/* `data` that writes all of it back without copying, and that consumes nothing. */
size_t bed_echo(struct owner *owner, fb_bytes in);
size_t bed_leave(struct owner *owner, fb_bytes in);
/* `eof` that does nothing. */
void bed_stay(struct owner *owner, fb_bytes rest);
void bed_abort(struct owner *owner);
/* Writes n bytes of a pattern that goes on where it ended. */
void bed_write_pattern(struct owner *owner, size_t n);
/* Fails unless exactly n bytes of that pattern were sent. */
void bed_check_pattern(const struct owner *owner, size_t n);

/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker over the simulated kernel, or the lower part of one: a test program starts its level,
 * with the same calls on every level. Time passes only when the test says so, or when a wait has
 * nothing else to do; mistakes of the program with a descriptor fail the test.
 *
 * Levels, each on the level before:
 *   loop    fixture_start_loop()    sources watched by the test (support/watched.h)
 *   net     fixture_start_net()     connections with recording owners (support/owner.h)
 *   stream  fixture_start_stream()  sessions of a scripted protocol (support/scripted.h)
 *   worker  fixture_start_worker()  the whole: a configuration, a listener, the channel to a master
 * Protocols, which need a configuration's text, are tested with the shipped kit
 * (<forkbeard/test.h>). */
#pragma once

#include "sim/sim.h"
#include "support/memory_log.h"
#include "support/scripted.h"
#include "support/test.h"
#include "text/variable.h"
#include "worker/worker.h"

#define FIXTURE_LISTENERS 4
/* The lingering_timeout of a net. */
#define FIXTURE_LINGERING_MS 5000

/* How the simulation reports events: once a change, or as long as a direction is ready. Tests of
 * both are loop tests from 0 to FIXTURE_EVENTS. */
enum fixture_events { FIXTURE_EDGE, FIXTURE_LEVEL, FIXTURE_EVENTS };

/* Memory for connections, counted. */
struct fixture_memory {
    struct memory memory;
    unsigned blocks;        /* taken and not given back */
    unsigned until_failure; /* allocations before the first failure; UINT_MAX: no failure */
    unsigned failures_max;  /* number of failing allocations after those; UINT_MAX at first: all */
    unsigned failures;
};

struct fixture {
    struct worker parts; /* the first member: storage; a level uses only a part */
    /* parts of the level; NULL above it */
    struct loop *loop;
    struct net *net;
    struct stream *stream;
    struct worker *worker;

    struct sim *sim;
    bool sim_borrowed; /* another fixture destroys it */
    bool simulated;    /* the loop runs on the simulation, not on the real kernel */
    struct memory_log log;
    void *test;                            /* for callbacks of the test, found by fixture_of() */
    void (*stop_parts)(struct fixture *f); /* the level's */
    void (*turn)(struct fixture *f, int timeout);

    /* from the net level on */
    struct fixture_memory memory;
    struct counters *counters, own_counters;
    struct heartbeat heartbeat;
    bool inside;       /* a callback is running */
    unsigned released; /* freed slots of connections; net level only */

    /* from the stream level on */
    struct shared *shared;
    struct slot_id slot;
    struct scripted_server server;
    struct arena *defaults; /* memory of the features' structs of the server */

    /* worker level */
    struct heritage heritage;
    struct cycle cycle;
    struct variables variables;
    struct bells bells;
    struct listener *listener;
    struct sim_socket *listening[FIXTURE_LISTENERS]; /* the listener's sockets */
    int master;                                      /* the channel's other end, or -1 */
    uint32_t rival_turn;                             /* turn of the latest fixture_take_mutex() */
    /* events of the latest turn, a letter each: 'w' a wait, 'o' a session opened, 'c' closed, and
       what the test notes itself */
    char order[256];
};

/* ---- Starting and stopping ---- */

/* A loop with room for so many sources, in which no time passes by itself. */
struct fixture *fixture_start_loop(uint32_t sources);
/* Starts a loop on the simulation of a second fixture, which is stopped later. */
struct fixture *fixture_start_loop_beside(
    struct fixture *other, enum fixture_events events, uint32_t sources);
/* Starts a loop with the options, except the log and the size of a slot (no mechanism: the
 * simulation's edge); on a simulation destroyed by the caller, or NULL: on a simulation of its
 * own. */
struct fixture *fixture_start_loop_with(struct sim *sim, const struct loop_options *options);
struct fixture *fixture_start_net(enum fixture_events events, uint32_t connections);
/* Starts connections of the real kernel. */
struct fixture *fixture_start_net_on(const struct mechanism *mechanism, uint32_t connections);
/* Sessions with the default settings of a server; the scripted one is at 192.0.2.7:77. */
struct fixture *fixture_start_stream(uint32_t connections);
/* Starts sessions of connections of the real kernel. */
struct fixture *fixture_start_stream_on(const struct mechanism *mechanism, uint32_t connections);

/* Fails if a line was logged that no test has taken, a connection is open, memory is held, or a
 * gauge has not returned to zero. */
void fixture_stop(struct fixture *fixture);
/* Ends the loop and leaves the simulation, for tests of its destruction's findings. */
void fixture_stop_loop(struct fixture *fixture);

/* ---- The turn ---- */

/* Fails where a structure of the fixture contradicts itself; called after every turn. */
void fixture_check(const struct fixture *fixture);
/* Turns the loop once, without passing time; a worker's turn takes the time of its wait. */
void fixture_turn(struct fixture *fixture);
/* Turns the loop once, waiting for at most so many ms. */
void fixture_turn_waiting(struct fixture *fixture, int timeout);
/* Turns until nothing is left to do; fails when there is no end to it. */
void fixture_run(struct fixture *fixture);
/* Lets time pass, then runs expired timers and consequences. */
void fixture_pass(struct fixture *fixture, uint64_t ms);
/* Runs the consequences of the test's calls outside of callbacks. */
void fixture_settle(struct fixture *fixture);
/* Ends every connection with FB_DRAINED. */
void fixture_end_all(struct fixture *fixture);

/* ---- Looking ---- */

/* Returns the log since the last call, except lines about begun sessions. */
const char *fixture_logged(struct fixture *fixture);
const char *fixture_logged_all(struct fixture *fixture);
uint64_t fixture_count(const struct fixture *fixture, enum counter counter);
/* How many blocks of memory connections hold. */
unsigned fixture_blocks_held(const struct fixture *fixture);

static inline struct fixture *fixture_of(struct loop *loop)
{
    return container_of(worker_of_loop(loop), struct fixture, parts);
}

/* ---- For the levels ---- */

struct fixture *fixture_create(struct sim *sim);
const struct mechanism *fixture_mechanism(
    const struct fixture *fixture, enum fixture_events events);
void fixture_init_memory(struct fixture_memory *memory);
/* Options of the fixture's net on a mechanism. */
struct net_options fixture_net_options(
    struct fixture *fixture, const struct mechanism *mechanism, uint32_t connections);
void fixture_check_gauges(const struct fixture *fixture);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers with a shared group of servers and a zone, in one process, for fuzz_upstream.c: state,
 * beginning and end. */
#pragma once

#include "fuzz/input.h"
#include "upstream/choice.h"
#include "upstream/zone_private.h"

#define WORKERS 2
#define SESSIONS 6
#define SERVERS 5
#define ENTRIES 8   /* fewer than all peers of all names */
#define ADDRESSES 4 /* the most addresses of a name */
#define PROBES 3

struct session {
    struct choice choice;
    bool began;
};

struct worker {
    struct loop loop;
    struct log log;
    struct upstreams upstreams;
    struct upstream_list list;
    struct upstream upstream;
    struct upstream_server servers[SERVERS];
    struct upstream_check checks[2];
    struct upstream_zone zone; /* a copy of the configuration's, as after a fork() */
    struct session sessions[SESSIONS];
    struct health_probe *probes[PROBES];
    struct scene *scene;
    bool runs;
};

struct scene {
    struct input *in;
    struct arena *arena;
    struct log log;
    struct zones zones;
    struct upstream_zone *zone; /* the configuration's, or NULL */
    struct fb_target targets[SERVERS * ADDRESSES];
    struct worker workers[WORKERS];
    uint64_t now_ms;
    uint32_t serial;
    uint8_t balancer, flags;
    bool damaged;
};

enum { HAS_ZONE = 1, HAS_CHECKS = 2, HAS_LIMITS = 4, IS_INFLIGHT = 8, HAS_SLOW_START = 16 };

void start_worker(struct scene *scene, unsigned i);
void end_worker(struct worker *worker);
/* Kills the worker, perhaps in possession of a lock. */
void kill_worker(struct worker *worker, uint8_t how);
/* Ends the running try, if any, and the session's resources. */
void end_try(struct session *session, fb_try_end how);
void end_session(struct session *session, fb_try_end how);
/* Pieces of memory that groups have. */
size_t worker_pieces(void);

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of the simulation share: a loop on it, and sources that count their events. */
#pragma once

#include "event/loop.h"
#include "sim/sim.h"
#include "support/test.h"

struct rig {
    struct loop loop; /* the first member */
    struct sim *sim;
    struct log log;
    struct log_target target;
};

struct thing {
    struct source source; /* the first member: a slot of the loop's table */
    unsigned runs[EVENT_DIRECTIONS];
    void (*run)(struct thing *thing, enum event_direction direction);
    uint8_t held[4096]; /* for `run` */
    size_t held_n;
    bool ended;
    int error;
};

/* A loop with room for n things, on a simulation of its own or on that of another. */
struct rig *rig_set_up(uint32_t n);
struct rig *rig_beside(struct rig *other, uint32_t n, bool edge);
/* Destroys the simulation unless a loop is left on it (sim_destroy would fail). */
void rig_tear_down(struct rig *rig);
void rig_tear_down_loop(struct rig *rig);

/* A source on a descriptor, or (-1) without one; not armed. */
struct thing *rig_thing(struct rig *rig, int fd);
/* Armed in both directions. */
struct thing *rig_watch(struct rig *rig, int fd);
void rig_close(struct rig *rig, struct thing **thing);

/* One turn, and turns until nothing is left to do. */
void rig_turn(struct rig *rig, int timeout);
void rig_run(struct rig *rig);

struct io_result rig_recv(struct thing *thing, void *p, size_t n);
struct io_result rig_send(struct thing *thing, const void *p, size_t n);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixture's level of a whole worker, with a configuration made by hand: one listener, one
 * echoing server. */
#pragma once

#include "channel/channel.h"
#include "support/fixture.h"
#include "worker/accept.h"

#include <string.h>

#define WORKER_DELAY_MS 500 /* accept_mutex_delay */

struct fixture_worker_options {
    enum fixture_events events;
    const struct mechanism *mechanism; /* a mechanism of the real kernel; NULL: the simulation's */
    uint32_t connections;
    unsigned processes; /* workers, the test's being number `index`; 0: a single process */
    unsigned index;
    bool mutex, multi_accept;
    bool bells;         /* workers wake each other */
    bool share;         /* accept_share */
    unsigned reuseport; /* sockets of the listener; 0: one without reuseport */
    int64_t shutdown_timeout;
};

/* Starts a worker that accepts. */
struct fixture *fixture_start_worker(const struct fixture_worker_options *options);
/* Starts a worker without an order to accept. */
struct fixture *fixture_prepare_worker(const struct fixture_worker_options *options);

/* Adds a letter to the order of the turn's events. */
void fixture_note(struct fixture *fixture, char letter);

/* A client that connects to the first listener; and so many at once. */
struct sim_socket *fixture_connect_client(struct fixture *fixture);
void fixture_connect_clients(struct fixture *fixture, unsigned n);

/* Turns until so many sessions are open; fails when that does not happen. */
void fixture_turn_until_open(struct fixture *fixture, unsigned n);

/* Takes the slot of another worker. */
struct slot_id fixture_take_slot(struct fixture *fixture);
/* Take the accept mutex for a second worker, in a turn after the first worker's last, and release
 * it. */
void fixture_take_mutex(struct fixture *fixture, struct slot_id id);
void fixture_release_mutex(struct fixture *fixture, struct slot_id id);
/* Receives what the worker has sent to the master: the kind of the next message, or 0. */
unsigned fixture_receive_message(struct fixture *fixture);

static inline struct shm_lock *fixture_mutex(const struct fixture *fixture)
{
    return &fixture->shared->common->accept_mutex;
}

static inline bool fixture_holds_mutex(const struct fixture *fixture)
{
    return shm_lock_owner(fixture_mutex(fixture)) != 0;
}

static inline bool fixture_mutex_is_of(const struct fixture *fixture, struct slot_id id)
{
    struct slot_id owner = shm_lock_id(shm_lock_owner(fixture_mutex(fixture)));

    return owner.slot == id.slot && owner.serial == id.serial;
}

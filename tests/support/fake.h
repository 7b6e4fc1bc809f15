/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulation (sim/sim.h) as unit tests use it: one a process, whose faults fail the test, and
 * whose time passes by itself. */
#pragma once

#include "sim/sim.h"

extern struct sim *fake_sim;
/* Its mechanisms, from fake_start() on. */
extern struct mechanism fake_edge, fake_level;

void fake_start(void);
/* Fails if a connection has not been closed by the mechanism's operation. */
void fake_stop(void);

static inline void fake_pass(uint64_t ms)
{
    sim_pass(fake_sim, ms);
}

static inline unsigned fake_reported(void)
{
    return sim_reported(fake_sim);
}

static inline int fake_timeout(void)
{
    return sim_timeout(fake_sim);
}

static inline void fake_on_wait(void (*waiting)(struct loop *loop, int timeout))
{
    sim_on_wait(fake_sim, waiting);
}

static inline void fake_refuse_watching(int error)
{
    sim_refuse_watching(fake_sim, error);
}

static inline struct sim_socket *fake_connection(void)
{
    return sim_connection(fake_sim);
}

static inline struct sim_socket *fake_listener(int fd)
{
    return sim_listener(fake_sim, fd);
}

#define fake_socket sim_socket
#define fake_client sim_client
#define fake_waiting sim_waiting_clients
#define fake_say sim_say
#define fake_says sim_says
#define fake_stall sim_stall
#define fake_end sim_end
#define fake_break sim_break
#define fake_take sim_set_room
#define fake_break_output sim_break_output
#define fake_unread sim_unread

/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulation (sim/sim.h) as unit tests use it: one a process, whose faults fail the test, and
 * whose time passes by itself. */
#pragma once

#include "sim/sim.h"

extern struct fb_sim *fake_sim;
/* Its mechanisms, from fake_start() on. */
extern struct fb_mechanism fake_edge, fake_level;

void fake_start(void);
/* Fails if a connection has not been closed by the mechanism's operation. */
void fake_stop(void);

static inline void fake_pass(uint64_t ms)
{
    fb_sim_pass(fake_sim, ms);
}

static inline unsigned fake_reported(void)
{
    return fb_sim_reported(fake_sim);
}

static inline int fake_timeout(void)
{
    return fb_sim_timeout(fake_sim);
}

static inline void fake_on_wait(void (*waiting)(struct fb_loop *loop, int timeout))
{
    fb_sim_on_wait(fake_sim, waiting);
}

static inline void fake_refuse_watching(int error)
{
    fb_sim_refuse_watching(fake_sim, error);
}

static inline struct fb_sim_socket *fake_connection(void)
{
    return fb_sim_connection(fake_sim);
}

static inline struct fb_sim_socket *fake_listener(int fd)
{
    return fb_sim_listener(fake_sim, fd);
}

#define fake_socket fb_sim_socket
#define fake_client fb_sim_client
#define fake_waiting fb_sim_waiting
#define fake_say fb_sim_say
#define fake_says fb_sim_says
#define fake_stall fb_sim_stall
#define fake_end fb_sim_end
#define fake_break fb_sim_break
#define fake_take fb_sim_take
#define fake_break_output fb_sim_break_output
#define fake_unread fb_sim_unread

/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual time of a simulation: a monotonic and a wall clock that only fb_sim_pass() moves on
 * together, and that every loop of the simulation reads instead of the system's. */
#include "sim/sim_private.h"

#include <assert.h>

/* The clocks begin at odd places, so that they are not taken for each other or for durations. */
#define FIRST_MONO_MS 1000000
#define FIRST_WALL_MS 1795253400000 /* 2026-11-21 09:30:00 UTC */

void sim_clock_init(struct fb_clock *clock)
{
    *clock = (struct fb_clock) { .mono_ms = FIRST_MONO_MS, .wall_ms = FIRST_WALL_MS };
}

void sim_clock_read(struct fb_loop *loop)
{
    const struct fb_sim *sim = fb_sim_of(loop);

    assert(sim->clock.mono_ms >= loop->clock.mono_ms); /* monotonic */
    loop->clock = sim->clock;
}

void fb_sim_pass(struct fb_sim *sim, uint64_t ms)
{
    assert(ms <= UINT64_MAX / 2 - sim->clock.mono_ms);
    sim->clock.mono_ms += ms;
    sim->clock.wall_ms += (int64_t)ms;
}

void fb_sim_set_auto(struct fb_sim *sim, bool on)
{
    sim->passes_by_itself = on;
}

void fb_sim_set_wall(struct fb_sim *sim, int64_t wall_ms)
{
    sim->clock.wall_ms = wall_ms;
}

uint64_t fb_sim_now(const struct fb_sim *sim)
{
    return sim->clock.mono_ms;
}

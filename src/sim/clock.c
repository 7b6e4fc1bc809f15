/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual time of a simulation: a monotonic and a wall clock that only sim_pass() moves on
 * together, and that every loop of the simulation reads instead of the system's. */
#include "sim/sim_private.h"

#include <assert.h>

/* The clocks begin at odd places, so that they are not taken for each other or for durations. */
#define FIRST_MONO_MS 1000000
#define FIRST_WALL_MS 1795253400000 /* 2026-11-21 09:30:00 UTC */

void sim_clock_init(struct clock *clock)
{
    *clock = (struct clock) { .mono_ms = FIRST_MONO_MS, .wall_ms = FIRST_WALL_MS };
}

void sim_clock_read(struct loop *loop)
{
    const struct sim *sim = sim_of(loop);

    assert(sim->clock.mono_ms >= loop->clock.mono_ms); /* monotonic */
    loop->clock = sim->clock;
}

void sim_pass(struct sim *sim, uint64_t ms)
{
    assert(ms <= UINT64_MAX / 2 - sim->clock.mono_ms);
    sim->clock.mono_ms += ms;
    sim->clock.wall_ms += (int64_t)ms;
}

void sim_set_auto(struct sim *sim, bool on)
{
    sim->passes_by_itself = on;
}

void sim_set_wall(struct sim *sim, int64_t wall_ms)
{
    sim->clock.wall_ms = wall_ms;
}

uint64_t sim_now_ms(const struct sim *sim)
{
    return sim->clock.mono_ms;
}

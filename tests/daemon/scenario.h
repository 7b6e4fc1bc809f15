/* SPDX-License-Identifier: BSD-2-Clause */
/* Long lives in a short time: workers are killed and configurations change under load. Each scenario
 * fails the test that runs it, or prints one line that sums it up. */
#pragma once

struct scenario_way {
    const char *name;
    const char *events;    /* directives */
    const char *parameter; /* of `listen` */
};

#define SCENARIO_WAYS 3

/* Ways to share a port. */
extern const struct scenario_way scenario_ways[SCENARIO_WAYS];

/* kill -9 of random workers: only their own sessions end, nobody is refused, the mutex comes back,
 * the statistics add up. */
void scenario_kills(const struct scenario_way *way, unsigned n);
/* Reloads with sessions open: they finish on their old worker, nobody is refused or reset, and no
 * process and no descriptor is left. */
void scenario_reloads(const struct scenario_way *way, unsigned n);
/* Reloads in quick succession, while workers of any generation are killed: only the victims' sessions
 * end, and one whole generation is left. */
void scenario_kills_in_reloads(const struct scenario_way *way, unsigned n);
/* The binary is changed, there and back and there again, with sessions open: they finish on their old
 * worker, nobody is refused or reset, and no process and no descriptor is left. */
void scenario_upgrades(const struct scenario_way *way, unsigned n);
/* Reloads of a broken configuration: nothing changes. */
void scenario_broken_reloads(const struct scenario_way *way, unsigned n);

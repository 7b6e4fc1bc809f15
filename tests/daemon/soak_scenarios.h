/* SPDX-License-Identifier: BSD-2-Clause */
/* Long lives in a short time: workers are killed and configurations change under load. Each
 * scenario fails the running test, or prints a line of summary. */
#pragma once

struct soak_mode {
    const char *name;
    const char *events;    /* directives */
    const char *parameter; /* a parameter of `listen` */
};

#define SOAK_MODES 3

/* Ways to share a port. */
extern const struct soak_mode soak_modes[SOAK_MODES];

/* kill -9 of random workers: only their own sessions end, no client is refused, the mutex comes
 * back, the statistics add up. */
void soak_kills(const struct soak_mode *way, unsigned n);
/* Reloads with sessions open: they finish on their old worker, no client is refused or reset, and
 * no process and no descriptor is left. */
void soak_reloads(const struct soak_mode *way, unsigned n);
/* Reloads in quick succession, while workers of any generation are killed: only the victims'
 * sessions end, and one whole generation is left. */
void soak_kills_in_reloads(const struct soak_mode *way, unsigned n);
/* The binary is changed, there and back and there again, with sessions open: all finish on the old
 * worker, no client is refused or reset, and no process and no descriptor is left. */
void soak_upgrades(const struct soak_mode *way, unsigned n);
/* Reloads of a broken configuration: nothing changes. */
void soak_broken_reloads(const struct soak_mode *way, unsigned n);

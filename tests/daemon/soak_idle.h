/* SPDX-License-Identifier: BSD-2-Clause */
/* Reloads with very many idle sessions, of which half have a protocol that says that they are. */
#pragma once

#include <stdbool.h>

struct soak_idle_plan {
    unsigned sessions, reloads;
    unsigned shutdown_ms; /* worker_shutdown_timeout */
    bool timed;           /* the machine is ours: the old ones have to be gone in time */
};

/* Fails the test that runs it if there are ever more workers than max_generations allows beside the
 * next generation, if old ones outlive the deadline and a second (`timed`), or if anybody is
 * refused; else prints a line that sums it up. */
void soak_idle(const struct soak_idle_plan *plan);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reloads with very many idle sessions, half with a protocol reporting idleness. */
#pragma once

#include <stdbool.h>

struct soak_idle_plan {
    unsigned sessions, reloads;
    unsigned shutdown_ms; /* worker_shutdown_timeout */
    bool timed;           /* the machine is ours: the old ones have to be gone in time */
};

/* Fails the running test if there are ever more workers than max_generations allows beside the next
 * generation, if old workers outlive the deadline and a second (`timed`), or if a client is
 * refused; else prints a line of summary. */
void soak_idle(const struct soak_idle_plan *plan);

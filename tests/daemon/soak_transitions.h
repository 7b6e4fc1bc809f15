/* SPDX-License-Identifier: BSD-2-Clause */
/* Reloads between all ways of accepting, with different numbers of workers, while clients come at a
 * pace of their own beside long sessions. */
#pragma once

#include <stdbool.h>

struct soak_transitions_plan {
    unsigned reloads;
    unsigned rate;   /* new sessions a second */
    unsigned long_n; /* long sessions, with the time of 100 reloads each */
    int way;         /* way of accepting: 0 to 2, or -1: all in turn */
};

#define SOAK_TRANSITIONS_MODES 3

/* Fails the running test if a client is refused, cut off or kept waiting, or if processes,
 * descriptors or memory are left at the end; else prints a line of summary. */
void soak_transitions(const struct soak_transitions_plan *plan);

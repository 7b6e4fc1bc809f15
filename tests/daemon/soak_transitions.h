/* SPDX-License-Identifier: BSD-2-Clause */
/* Reloads from each way of accepting to each other, with other numbers of workers, while clients
 * come at a pace of their own and others stay. */
#pragma once

#include <stdbool.h>

struct soak_transitions_plan {
    unsigned reloads;
    unsigned rate;   /* new sessions a second */
    unsigned long_n; /* sessions that stay; each does so for the time of 100 reloads */
    int way;         /* way of accepting: 0 to 2, or -1: each in turn */
};

#define SOAK_TRANSITIONS_MODES 3

/* Fails the test that runs it if anybody is refused, cut off or kept waiting, or if processes,
 * descriptors or memory are left at the end; else prints a line that sums it up. */
void soak_transitions(const struct soak_transitions_plan *plan);

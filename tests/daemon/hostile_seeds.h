/* SPDX-License-Identifier: BSD-2-Clause */
/* Lives of a daemon with an attacker without knowledge of the daemon (module/attack.h), a life by
 * every number. A worker attacks everything within reach; it dies, or stays until a reload. The
 * master answers, the other workers serve within the plan's time, a reload makes everything whole,
 * and TERM ends the daemon. */
#pragma once

struct hostile_plan {
    unsigned first, n; /* numbers */
    unsigned lives;    /* at a time */
    unsigned writes;   /* of each attack */
    unsigned serve_ms; /* the longest time for a worker, the status or TERM */
};

/* Fails the test with the number and the step at which the first has failed. */
void hostile_seeds(const struct hostile_plan *plan);

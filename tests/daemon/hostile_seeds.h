/* SPDX-License-Identifier: BSD-2-Clause */
/* Lives of a daemon with an attacker who knows nothing of it (module/attack.h), one by each number.
 *
 * A worker attacks all that it can reach; it dies, or stays until a reload. The master answers, the
 * other workers serve within the time that the plan allows, a reload makes everything whole, and
 * TERM ends it. */
#pragma once

struct hostile_plan {
    unsigned first, n; /* numbers */
    unsigned lives;    /* at a time */
    unsigned writes;   /* of each attack */
    unsigned serve_ms; /* the longest that another worker, the status or TERM may take */
};

/* Fails the test with the number and the step at which the first has failed. */
void hostile_seeds(const struct hostile_plan *plan);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of sessions while workers are killed. */
#pragma once

struct soak_limits_plan {
    unsigned workers, kills;
    unsigned attempts; /* clients that want a session at once */
    unsigned most;     /* sessions that the limit allows */
};

/* Kills workers, and reloads at times, while clients come again and again: the clients' own count
 * of those who were let in never exceeds the limit, and all of it is there in the end. Fails the
 * test that runs it, or prints one line that sums it up. */
void soak_limits(const struct soak_limits_plan *plan);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of sessions while workers are killed. */
#pragma once

struct soak_limits_plan {
    unsigned workers, kills;
    unsigned attempts; /* clients that want a session at once */
    unsigned most;     /* sessions that the limit allows */
};

/* Kills workers, and reloads at times, while clients come again and again: the clients' own count
 * of admitted clients never exceeds the limit, and reaches it in the end. Fails the running test,
 * or prints a line of summary. */
void soak_limits(const struct soak_limits_plan *plan);

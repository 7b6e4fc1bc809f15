/* SPDX-License-Identifier: BSD-2-Clause */
/* The end, and the taking back of a graceful one. */
#pragma once

#include <stdbool.h>

struct master;

/* Begins to end the daemon, or goes on to end it at once. */
void quit_begin(struct master *master, bool gracefully);
/* Whether the handled signal comes from the service manager. */
bool quit_is_by_manager(const struct master *master);
/* Refuses clients that wait for the beginning of a reload or an upgrade. */
void quit_refuse_waiting(struct master *master);
/* Advances a quit, in each wake-up. */
void quit_advance(struct master *master);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory with the keys of tickets and the sessions with servers, which all keepers of a daemon
 * share, over reloads and upgrades: the master makes it, and hands its descriptor over. Never
 * mapped by the master, and in a worker neither mapped nor open. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Makes zeroed memory of a sealed size; returns the descriptor, -1 with errno. */
int ticket_memory_create(void);
/* Whether another binary's memory can be used, of a layout of that version; seals the size. */
bool ticket_memory_fits(int fd, uint32_t layout);
/* Maps the memory, for the life of the process; NULL with errno. */
void *ticket_memory_map(int fd);

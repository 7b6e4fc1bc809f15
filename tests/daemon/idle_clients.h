/* SPDX-License-Identifier: BSD-2-Clause */
/* Very many clients, in processes of their own, connected and silent. Rejected clients come
 * back. */
#pragma once

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/types.h>

#define IDLE_CLIENTS_PROCESSES 5
#define IDLE_CLIENTS_PORTS 2

/* The counters of all processes, in shared memory. */
struct idle_clients_counts {
    atomic_uint open;     /* just now */
    atomic_uint returned; /* connected again */
    atomic_uint refused;
};

struct idle_clients {
    pid_t pids[IDLE_CLIENTS_PROCESSES];
    struct idle_clients_counts *counts;
};

/* Waits until so many are connected, equally on each of the ports. */
void idle_clients_start(
    struct idle_clients *clients, const in_port_t ports[IDLE_CLIENTS_PORTS], unsigned sessions);
void idle_clients_stop(struct idle_clients *clients);

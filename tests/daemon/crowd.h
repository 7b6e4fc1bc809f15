/* SPDX-License-Identifier: BSD-2-Clause */
/* Very many clients, in processes of their own, that connect and say nothing. Whoever is sent away
 * comes back. */
#pragma once

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/types.h>

#define CROWD_PROCESSES 5
#define CROWD_PORTS 2

/* The counters of all processes, in memory that they share. */
struct crowd_counts {
    atomic_uint open;     /* just now */
    atomic_uint returned; /* connected again */
    atomic_uint refused;
};

struct crowd {
    pid_t pids[CROWD_PROCESSES];
    struct crowd_counts *counts;
};

/* Waits until so many are connected, the same number to each of the ports. */
void crowd_start(struct crowd *crowd, const in_port_t ports[CROWD_PORTS], unsigned sessions);
void crowd_stop(struct crowd *crowd);

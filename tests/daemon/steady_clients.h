/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of the echo protocol in threads, without a pause, with the time of each session measured.
 * A broken worker may keep its accepted clients: only sessions that begin within a watch are
 * judged. */
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define STEADY_CLIENTS_THREADS 8

struct steady_clients {
    in_port_t port;
    pthread_t threads[STEADY_CLIENTS_THREADS];
    atomic_bool stops;
    _Atomic int64_t watched_ms; /* sessions begun from then on are judged; 0: none */
    atomic_uint served;
    atomic_uint failed;     /* refused, cut off, or not served in time */
    atomic_uint slowest_ms; /* the longest of those that were served */
    atomic_int error;       /* the errno of the last failure */
};

void steady_clients_start(struct steady_clients *clients, in_port_t port);
/* Judges sessions that begin from now on. */
void steady_clients_watch(struct steady_clients *clients);
/* Judges no more, and fails if a session failed, or took longer than most_ms; 0: however long. */
void steady_clients_check(struct steady_clients *clients, const char *what, unsigned most_ms);
void steady_clients_stop(struct steady_clients *clients);

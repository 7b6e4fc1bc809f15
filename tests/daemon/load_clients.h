/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients in threads that connect, echo and end without a pause to speak of, and count. */
#pragma once

#include "daemon/proc.h"

#include <pthread.h>
#include <stdatomic.h>

#define LOAD_CLIENTS_THREADS 4
#define LOAD_CLIENTS_LOST_MAX 1024

struct load_clients {
    in_port_t port;
    pthread_t threads[LOAD_CLIENTS_THREADS];
    atomic_bool stops;
    atomic_uint connected;                 /* sessions begun */
    atomic_uint echoed;                    /* sessions that ran to their end */
    atomic_uint refused;                   /* connections that could not be had */
    atomic_uint wrong;                     /* other bytes than sent, or no answer in time */
    atomic_uint lost_n;                    /* sessions that the other side ended */
    in_port_t lost[LOAD_CLIENTS_LOST_MAX]; /* their clients' ports */
};

void load_clients_start(struct load_clients *load, in_port_t port);
/* Waits for this number of further sessions to end. */
void load_clients_wait(struct load_clients *load, unsigned sessions);
void load_clients_stop(struct load_clients *load);
/* Stops, and fails if a client was refused, cut off, or given wrong bytes. */
void load_clients_stop_unharmed(struct load_clients *load);
/* Sessions ended by the server although their clients are not among the victims. */
unsigned load_clients_lost_beyond(
    const struct load_clients *load, const struct proc_ports *victims);

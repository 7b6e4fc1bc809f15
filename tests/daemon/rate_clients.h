/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of the echo protocol at a pace of their own, without regard to earlier clients (an open
 * loop), beside long sessions. A single thread drives all and counts. */
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct rate_clients_options {
    in_port_t port;
    unsigned rate;    /* new sessions a second: connect, an exchange, end */
    unsigned long_n;  /* long sessions, with exchanges all the time */
    unsigned talk_ms; /* between two exchanges of one of these */
    unsigned missed;  /* new clients allowed to be refused or reset, in all */
};

struct rate_clients {
    struct rate_clients_options options;
    pthread_t thread;
    atomic_bool stops;
    atomic_uint renewals;        /* long sessions still to be ended and begun again */
    atomic_uint connected;       /* sessions begun */
    _Atomic(atomic_uint *) told; /* a counter of sessions begun, for another process */
    atomic_uint echoed;          /* short sessions that ran to their end */
    atomic_uint exchanges;       /* exchanges of long sessions */
    atomic_uint renewed;         /* long sessions ended and begun again */
    atomic_uint refused;         /* connections that could not be had */
    atomic_uint reset;           /* short sessions that the other side ended */
    atomic_uint long_ended;      /* the same of long ones */
    atomic_uint wrong;           /* other bytes than were sent */
    atomic_uint late;            /* no answer in time */
    atomic_uint skipped;         /* due sessions that could not be begun */
    atomic_uint slowest_ms;      /* the longest from connecting to the answer of a short session */
    atomic_int error;            /* the errno of the last failure; 0: none */
};

/* Waits until there were as many exchanges as long sessions. */
void rate_clients_start(struct rate_clients *clients, const struct rate_clients_options *options);
/* Waits until so many more short sessions have run to their end. */
void rate_clients_wait(struct rate_clients *clients, unsigned sessions);
/* Ends so many long sessions and begins them again, the oldest first. */
void rate_clients_renew(struct rate_clients *clients, unsigned n);
/* Lets every session finish the current exchange, and ends all. */
void rate_clients_stop(struct rate_clients *clients);
/* Fails if a client was refused, cut off, or given wrong bytes. */
void rate_clients_check(const struct rate_clients *clients);

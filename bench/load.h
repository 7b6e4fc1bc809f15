/* SPDX-License-Identifier: BSD-2-Clause */
/* The load generator: its command line, and the memory shared by its processes. */
#pragma once

#include "bench/histogram.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LOAD_PROCESSES_MAX 64

/* An operation is an exchange on a connection that stays (LOAD_ECHO) or `size` bytes that
 * the server sends unasked (LOAD_BULK), or the whole of a connection: read until the server closes
 * (LOAD_RETURN); send a message, read its echo, close (LOAD_MESSAGE). */
enum load_kind { LOAD_ECHO, LOAD_BULK, LOAD_RETURN, LOAD_MESSAGE };

struct load {
    enum load_kind kind;
    struct sockaddr_in to;
    unsigned connections, processes;
    size_t size;         /* bytes of a message */
    unsigned depth;      /* messages of a connection under way at once */
    uint64_t operations; /* in all; 0: for `seconds` */
    double seconds, warm_up;
    double rate;      /* operations a second at fixed times; 0: the next when one has ended */
    double open_rate; /* connections opened a second; 0: as fast as the server accepts */
    pid_t server;     /* whose process tree is accounted; 0: none */
    bool holds;       /* connections stay idle, and that is all */
    bool waits;       /* until standard input ends, while they do */
};

enum load_phase { LOAD_OPENS, LOAD_WARMS_UP, LOAD_MEASURES, LOAD_STOPS };

/* Results of a single process of the generator, their only writer. */
struct load_process {
    _Alignas(64) atomic_bool ready;
    atomic_ullong operations, errors;
    struct histogram histogram;
};

struct load_shared {
    atomic_int phase;    /* written by the parent */
    atomic_ullong begun; /* when the phase LOAD_WARMS_UP began, in ns of the monotonic clock */
    struct load_process processes[];
};

uint64_t load_now(void);

/* The life of process number `index`; returns when the phase is LOAD_STOPS, or its part of the
 * operations is done. */
void load_client_run(const struct load *load, struct load_shared *shared, unsigned index);

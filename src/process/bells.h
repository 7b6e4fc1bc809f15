/* SPDX-License-Identifier: BSD-2-Clause */
/* Bells: one for each worker of a generation, by which any other of them wakes it. The master opens
 * them before the first fork, so that every worker inherits all, one that replaces another too; it
 * rings none. A bell carries no data, and its count means nothing: all workers can write it. */
#pragma once

#include <stdbool.h>

struct bells {
    int *fds; /* descriptors that are watched, by the worker's number among worker_processes, and
                 behind them, if they are others, those that ring; NULL: no bells */
    unsigned n;
    unsigned fd_n; /* all descriptors */
};

/* More workers than this have none: each keeps a descriptor for every other. */
#define BELLS_MAX 256

/* Opens n bells, or none where it cannot be (no descriptors, no memory): nothing depends on them
 * but how soon a worker wakes. */
void bells_open(struct bells *bells, unsigned n);
void bells_close(struct bells *bells);

/* Rings; never waits. A count that somebody has filled up is emptied first. */
void bells_ring(const struct bells *bells, unsigned i);
/* Empties the count of a bell that has rung. */
void bells_quiet(const struct bells *bells, unsigned i);

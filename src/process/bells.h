/* SPDX-License-Identifier: BSD-2-Clause */
/* Bells of a generation's workers, by which workers wake each other. The master opens all bells
 * before the first fork, so that every worker inherits all, replacements too, and rings none. A
 * bell carries no data, and its count means nothing: all workers can write it. */
#pragma once

struct bells {
    int *fds; /* watched descriptors, by the worker's number among worker_processes, followed by
                 ringing descriptors, if these differ; NULL: no bells */
    unsigned n;
    unsigned fd_n; /* all descriptors */
};

/* More workers have no bells: each worker keeps the descriptors of all. */
#define BELLS_MAX 256

/* Opens n bells, or none (no descriptors, no memory): wake-ups are later without bells. */
void bells_open(struct bells *bells, unsigned n);
void bells_close(struct bells *bells);

/* Rings, and never waits. A full count is emptied first. */
void bells_ring(const struct bells *bells, unsigned i);
/* Empties the count of a rung bell. */
void bells_quiet(const struct bells *bells, unsigned i);

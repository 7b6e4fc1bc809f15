/* SPDX-License-Identifier: BSD-2-Clause */
/* The protocols of the configuration's servers in one worker: their worker_state, their row of
 * metrics, worker_start and worker_stop. Each protocol starts once, however many servers have
 * it. */
#pragma once

#include "shm/metrics.h"

#include <stdbool.h>

struct fb_worker;

/* A protocol in this worker. */
struct worker_protocol {
    void *state;  /* worker_state bytes, or NULL */
    shm_row *row; /* the row of its metrics, or NULL */
    bool started; /* worker_start has succeeded */
};

/* Starts the protocols; -1 after an emerg line. */
int worker_protocols_start(struct fb_worker *worker);
/* Stops those that have started, and frees the state of each. */
void worker_protocols_stop(struct fb_worker *worker);

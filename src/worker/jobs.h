/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread pools of a worker: blocking jobs of protocols (fb_run()).
 *
 * Threads start with their first job, never before the sandbox. A thread uses only its pool's queue
 * and that of finished jobs, under the mutex, and the loop's notify(); `done` runs on the loop. */
#pragma once

#include <stddef.h>

struct fb_pool;
struct fb_worker;
struct threads;
struct worker;

/* Queues a job with n copied bytes, as fb_run() says; -1 when refused. */
int jobs_run(struct fb_worker *handle, const struct fb_pool *pool, void (*work)(void *job),
    void (*done)(struct fb_worker *handle, void *job), const void *job, size_t n);
/* Starts threads for jobs queued during the start; -1 after an emerg line. */
int jobs_begin(struct worker *worker);
/* The number of jobs without a finished `done`. */
unsigned jobs_busy(const struct worker *worker);
/* Drops the queue and joins the threads; jobs that still run are left to the process's end. */
void jobs_done(struct worker *worker);

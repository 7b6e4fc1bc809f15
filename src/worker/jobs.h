/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs of protocols: blocking jobs on the thread pools of a worker (fb_run()), and posted work for
 * the next turn of the loop (fb_post()). Threads start with their first job, never before the
 * sandbox. A thread uses only its pool's queue and that of finished jobs, under the mutex, and the
 * loop's notify(); `done` runs on the loop. */
#pragma once

#include <bsd/sys/queue.h>
#include <stddef.h>

struct fb_pool;
struct fb_worker;
struct job;
struct worker;

typedef void job_done(struct fb_worker *handle, void *job);

STAILQ_HEAD(job_queue, job);

struct posts {
    struct job_queue queue;
    struct source *source; /* the loop's own; NULL before the first */
};

/* Queues a job with n copied bytes, as fb_run() says; -1 when refused. */
int jobs_run(struct fb_worker *handle, const struct fb_pool *pool, void (*work)(void *job),
    job_done *done, const void *job, size_t n);
/* Posts work with n copied bytes, as fb_post() says; -1 without memory. */
int jobs_post(struct fb_worker *handle, job_done *run, const void *work, size_t n);
/* Starts threads for jobs queued during the start; -1 after an emerg line. */
int jobs_begin(struct worker *worker);
/* The number of jobs without a finished `done`. */
unsigned jobs_busy(const struct worker *worker);
/* Drops queues and joins threads; jobs that still run are left to the end of the process. */
void jobs_done(struct worker *worker);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of a worker and their two queues. The mutex guards everything behind it in the
 * struct; what stands before it belongs to the loop. A job is in one queue, in a thread's hands, or
 * gone. */
#include "worker/threads.h"

#include "base/check.h"
#include "base/wiped.h"
#include "worker/worker.h"

#include <bsd/sys/queue.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
    STAILQ_ENTRY(job) link;
    LIST_ENTRY(job) running;
    unsigned protocol; /* index of the protocol that has queued it, or HEARTBEAT_NO_PROTOCOL */
    void (*work)(void *job);
    void (*done)(struct fb_worker *worker, void *job);
    void *argument;
    max_align_t bytes[];
};

STAILQ_HEAD(jobs, job);

#define THREADS_KIND KIND('t', 'h', 'r', 'd')

struct threads {
    unsigned kind;
    struct loop *loop;
    struct heartbeat *heartbeat;
    unsigned busy; /* jobs whose `done` has not run */

    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t wanted;
    struct jobs queue, finished;
    LIST_HEAD(, job) running;
    unsigned queued, idle;
    bool ending;
    unsigned n, most;
    pthread_t threads[];
};

/* Says in the heartbeat which jobs run, with the mutex held. */
static void note_running(struct threads *threads)
{
    unsigned protocol = HEARTBEAT_NO_PROTOCOL, n = 0;
    const struct job *job;

    LIST_FOREACH (job, &threads->running, running) {
        protocol = n == 0 || job->protocol == protocol ? job->protocol : HEARTBEAT_NO_PROTOCOL;
        n++;
    }
    assert(n <= threads->n);
    heartbeat_set_jobs(threads->heartbeat, n, protocol);
}

/* A job has called pthread_exit(), and would never be done. */
static void end_process(void *arg)
{
    struct threads *threads = arg;

    if (threads->kind != THREADS_KIND) /* in a child of fork() */
        wiped_end();
    if (!threads->ending)
        heartbeat_set_end(threads->heartbeat, HEARTBEAT_THREAD_LEFT, 0);
    _exit(EXIT_FAILURE);
}

/* Runs a job, with the mutex held before and afterwards. */
static void run_job(struct threads *threads, struct job *job)
{
    LIST_INSERT_HEAD(&threads->running, job, running);
    note_running(threads);
    pthread_mutex_unlock(&threads->mutex);
    pthread_cleanup_push(end_process, threads);
    job->work(job->argument);
    pthread_cleanup_pop(0);
    if (threads->kind != THREADS_KIND) /* a child of fork() has come back */
        wiped_end();
    pthread_mutex_lock(&threads->mutex);
    LIST_REMOVE(job, running);
    if (!threads->ending) /* once ending, the heartbeat may be gone, as the loop */
        note_running(threads);
}

static void *run_jobs(void *arg)
{
    struct threads *threads = arg;

    CHECK_KIND(threads, THREADS_KIND);
    pthread_mutex_lock(&threads->mutex);
    for (;;) {
        struct job *job = STAILQ_FIRST(&threads->queue);

        if (job == NULL && threads->ending)
            break;
        if (job == NULL) {
            threads->idle++;
            pthread_cond_wait(&threads->wanted, &threads->mutex);
            threads->idle--;
            continue;
        }
        STAILQ_REMOVE_HEAD(&threads->queue, link);
        assert(threads->queued > 0);
        threads->queued--;
        run_job(threads, job);
        STAILQ_INSERT_TAIL(&threads->finished, job, link);
        if (!threads->ending) /* once ending, the loop may be gone */
            threads->loop->mechanism->notify(threads->loop);
    }
    pthread_mutex_unlock(&threads->mutex);
    return NULL;
}

static void finish_jobs(struct loop *loop)
{
    struct fb_worker *worker = worker_of_loop(loop);
    struct threads *threads = worker->threads;
    struct heartbeat *heartbeat = worker->stream.net.heartbeat;
    struct jobs finished = STAILQ_HEAD_INITIALIZER(finished);
    struct job *job;

    CHECK_KIND(threads, THREADS_KIND);
    pthread_mutex_lock(&threads->mutex);
    STAILQ_CONCAT(&finished, &threads->finished);
    pthread_mutex_unlock(&threads->mutex);
    while ((job = STAILQ_FIRST(&finished)) != NULL) {
        STAILQ_REMOVE_HEAD(&finished, link);
        assert(threads->busy > 0);
        threads->busy--;
        heartbeat_begin(heartbeat, CALLBACK_DONE, job->protocol);
        job->done(worker, job->argument);
        worker_check_fork(worker);
        heartbeat_end(heartbeat);
        memory_release(worker->stream.net.memory, job);
    }
    net_flush(&worker->stream.net);
}

static size_t threads_size(unsigned most)
{
    return sizeof(struct threads) + most * sizeof(pthread_t);
}

static struct threads *create_threads(struct fb_worker *worker)
{
    unsigned most = (unsigned)worker->cycle->core.threads;
    struct threads *threads = wiped_alloc(threads_size(most));
    struct loop *loop = &worker->stream.net.loop;

    if (threads == NULL)
        return NULL;
    threads->kind = THREADS_KIND;
    threads->most = most;
    threads->loop = loop;
    threads->heartbeat = worker->stream.net.heartbeat;
    STAILQ_INIT(&threads->queue);
    STAILQ_INIT(&threads->finished);
    LIST_INIT(&threads->running);
    pthread_mutex_init(&threads->mutex, NULL);
    pthread_cond_init(&threads->wanted, NULL);
    if (loop_set_notified(loop, finish_jobs) == -1) {
        wiped_free(threads, threads_size(most));
        return NULL;
    }
    return threads;
}

/* Starts a thread that blocks every signal: signals are handled by the loop's thread. */
static bool start_thread(struct threads *threads)
{
    sigset_t all, saved;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    error = pthread_create(&threads->threads[threads->n], NULL, run_jobs, threads);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    threads->n += error == 0;
    return error == 0;
}

/* Queues a job, with the mutex held; false when the queue is full, or no thread could be
 * started. */
static bool enqueue(struct threads *threads, struct job *job, const struct core_settings *core)
{
    assert(core->threads > 0 && threads->n <= core->threads && threads->idle <= threads->n);
    if (threads->queued >= core->thread_queue)
        return false;
    if (threads->idle <= threads->queued && threads->n < core->threads && !start_thread(threads) &&
        threads->n == 0)
        return false;
    STAILQ_INSERT_TAIL(&threads->queue, job, link);
    threads->queued++;
    pthread_cond_signal(&threads->wanted);
    return true;
}

int threads_run(struct fb_worker *worker, void (*work)(void *job),
    void (*done)(struct fb_worker *worker, void *job), const void *job, size_t n)
{
    struct job *copy;
    bool accepted;

    assert(work != NULL && done != NULL);
    if (worker->threads == NULL)
        worker->threads = create_threads(worker);
    if (worker->threads == NULL || n > SIZE_MAX / 2)
        return -1;
    copy = memory_alloc(worker->stream.net.memory, sizeof(*copy) + n);
    if (copy == NULL)
        return -1;
    copy->protocol = heartbeat_running_protocol(worker->stream.net.heartbeat);
    copy->work = work;
    copy->done = done;
    copy->argument = n > 0 ? copy->bytes : NULL;
    if (n > 0)
        memcpy(copy->bytes, job, n);

    pthread_mutex_lock(&worker->threads->mutex);
    accepted = enqueue(worker->threads, copy, &worker->cycle->core);
    pthread_mutex_unlock(&worker->threads->mutex);
    if (!accepted) {
        memory_release(worker->stream.net.memory, copy);
        return -1;
    }
    worker->threads->busy++;
    return 0;
}

unsigned threads_busy(const struct fb_worker *worker)
{
    return worker->threads != NULL ? worker->threads->busy : 0;
}

/* Frees the jobs that no thread has begun, with the mutex held. */
static void discard_queue(struct threads *threads, const struct memory *memory)
{
    struct job *job;

    while ((job = STAILQ_FIRST(&threads->queue)) != NULL) {
        STAILQ_REMOVE_HEAD(&threads->queue, link);
        memory_release(memory, job);
        threads->queued--;
    }
    assert(threads->queued == 0);
}

void threads_done(struct fb_worker *worker)
{
    struct threads *threads = worker->threads;

    if (threads == NULL)
        return;
    assert(worker->phase == WORKER_ENDING);
    CHECK_KIND(threads, THREADS_KIND);
    worker->threads = NULL;
    pthread_mutex_lock(&threads->mutex);
    threads->ending = true;
    discard_queue(threads, worker->stream.net.memory);
    pthread_cond_broadcast(&threads->wanted);
    pthread_mutex_unlock(&threads->mutex);
    if (threads->busy > 0)
        return; /* a job may take for ever: threads and memory are left to the process's end */
    for (unsigned i = 0; i < threads->n; i++)
        pthread_join(threads->threads[i], NULL);
    pthread_cond_destroy(&threads->wanted);
    pthread_mutex_destroy(&threads->mutex);
    threads->kind = 0;
    wiped_free(threads, threads_size(threads->most));
}

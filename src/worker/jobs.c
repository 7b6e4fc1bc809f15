/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of a worker, in pools with a queue each, and the common queue of finished jobs. The
 * mutex guards the pools and the members behind it; the members before it are the loop's. */
#include "worker/jobs.h"

#include "base/check.h"
#include "worker/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
    STAILQ_ENTRY(job) link;
    LIST_ENTRY(job) running;
    struct fb_worker *handle; /* protocol of the job; for the loop alone */
    unsigned protocol;        /* its index */
    void (*work)(void *job);  /* NULL: posted work */
    job_done *done;
    void *argument;
    max_align_t bytes[];
};

#define THREADS_KIND KIND('t', 'h', 'r', 'd')

/* A pool in use: threads waiting for jobs. */
struct pool {
    const struct fb_pool *settings; /* the cycle's */
    struct threads *owner;
    pthread_cond_t wanted;
    struct job_queue queue;
    unsigned queued, idle;
    unsigned n; /* threads that have started */
    pthread_t *threads;
};

struct threads {
    unsigned kind;
    struct loop *loop;
    struct heartbeat *heartbeat;
    unsigned busy; /* jobs whose `done` has not run */
    size_t size;   /* bytes with pools and threads */

    pthread_mutex_t mutex; /* for what follows */
    struct job_queue finished;
    LIST_HEAD(, job) running;
    bool ending;
    unsigned n; /* threads of all pools */
    unsigned pool_n;
    struct pool pools[]; /* at their index; their threads follow */
};

static struct job *create_job(
    struct fb_worker *handle, void (*work)(void *job), job_done *done, const void *p, size_t n)
{
    struct job *job = n <= SIZE_MAX / 2
                          ? memory_alloc(handle->worker->stream.net.memory, sizeof(*job) + n)
                          : NULL;

    if (job == NULL)
        return NULL;
    *job = (struct job) { .handle = handle, .protocol = handle->index, .work = work, .done = done };
    if (n > 0)
        job->argument = memcpy(job->bytes, p, n);
    return job;
}

static struct job *take_job(struct job_queue *queue)
{
    struct job *job = STAILQ_FIRST(queue);

    if (job != NULL)
        STAILQ_REMOVE_HEAD(queue, link);
    return job;
}

static void finish_queue(struct worker *worker, struct job_queue *queue, enum callback callback)
{
    struct job *job;

    while ((job = take_job(queue)) != NULL) {
        assert(job->work == NULL || worker->threads->busy > 0);
        if (job->work != NULL)
            worker->threads->busy--;
        WORKER_CALL(job->handle, callback, job->done(job->handle, job->argument));
        memory_release(worker->stream.net.memory, job);
    }
    net_flush(&worker->stream.net);
}

static void discard_queue(struct worker *worker, struct job_queue *queue)
{
    struct job *job;

    while ((job = take_job(queue)) != NULL)
        memory_release(worker->stream.net.memory, job);
}

/* ---- Posted work ---- */

/* Runs earlier posts only: self-posting work leaves time for the rest. */
static void run_posts(struct loop *loop, struct source *source)
{
    struct worker *worker = worker_of_loop(loop);
    struct job_queue queue = STAILQ_HEAD_INITIALIZER(queue);

    assert(source == worker->posts.source && !STAILQ_EMPTY(&worker->posts.queue));
    STAILQ_CONCAT(&queue, &worker->posts.queue);
    finish_queue(worker, &queue, CALLBACK_POSTED);
}

int jobs_post(struct fb_worker *handle, job_done *run, const void *work, size_t n)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = run_posts } };
    struct worker *worker = worker_of(handle);
    struct loop *loop = &worker->stream.net.loop;
    struct posts *posts = &worker->posts;
    struct job *job;

    assert(run != NULL);
    if (posts->source == NULL) {
        STAILQ_INIT(&posts->queue);
        posts->source = loop_make_own(loop, QUEUE_NORMAL, &ops);
    }
    job = posts->source != NULL ? create_job(handle, NULL, run, work, n) : NULL;
    if (job == NULL)
        return -1;
    STAILQ_INSERT_TAIL(&posts->queue, job, link);
    loop_post(loop, &posts->source->events[EVENT_READ], QUEUE_NEXT);
    return 0;
}

/* ---- Threads ---- */

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
static void end_thread_process(void *arg)
{
    struct threads *threads = arg;

    if (threads->kind != THREADS_KIND) /* in a child of fork() */
        os_wiped_end();
    if (!threads->ending)
        heartbeat_set_end(threads->heartbeat, HEARTBEAT_THREAD_LEFT, 0);
    _exit(EXIT_FAILURE);
}

/* Runs a job, with the mutex held before and afterwards. */
static void run_thread_job(struct threads *threads, struct job *job)
{
    LIST_INSERT_HEAD(&threads->running, job, running);
    note_running(threads);
    pthread_mutex_unlock(&threads->mutex);
    pthread_cleanup_push(end_thread_process, threads);
    job->work(job->argument);
    pthread_cleanup_pop(0);
    if (threads->kind != THREADS_KIND) /* a child of fork() has come back */
        os_wiped_end();
    pthread_mutex_lock(&threads->mutex);
    LIST_REMOVE(job, running);
    if (!threads->ending) /* once ending, the heartbeat may be gone, as the loop */
        note_running(threads);
}

static void *run_jobs(void *arg)
{
    struct pool *pool = arg;
    struct threads *threads = pool->owner;

    CHECK_KIND(threads, THREADS_KIND);
    pthread_mutex_lock(&threads->mutex);
    for (;;) {
        struct job *job = take_job(&pool->queue);

        if (job == NULL && threads->ending)
            break;
        if (job == NULL) {
            pool->idle++;
            pthread_cond_wait(&pool->wanted, &threads->mutex);
            pool->idle--;
            continue;
        }
        assert(pool->queued > 0);
        pool->queued--;
        run_thread_job(threads, job);
        STAILQ_INSERT_TAIL(&threads->finished, job, link);
        if (!threads->ending) /* once ending, the loop may be gone */
            threads->loop->mechanism->notify(threads->loop);
    }
    pthread_mutex_unlock(&threads->mutex);
    return NULL;
}

static void finish_jobs(struct loop *loop)
{
    struct worker *worker = worker_of_loop(loop);
    struct threads *threads = worker->threads;
    struct job_queue finished = STAILQ_HEAD_INITIALIZER(finished);

    CHECK_KIND(threads, THREADS_KIND);
    pthread_mutex_lock(&threads->mutex);
    STAILQ_CONCAT(&finished, &threads->finished);
    pthread_mutex_unlock(&threads->mutex);
    finish_queue(worker, &finished, CALLBACK_DONE);
}

static struct threads *create_threads(struct worker *worker)
{
    const struct fb_pool *first = &worker->cycle->core.pool;
    struct loop *loop = &worker->stream.net.loop;
    size_t size = sizeof(struct threads);
    struct threads *threads;
    pthread_t *next;

    for (const struct fb_pool *pool = first; pool != NULL; pool = pool->next)
        size += sizeof(struct pool) + (size_t)pool->threads * sizeof(pthread_t);
    threads = os_wiped_alloc(size);
    if (threads == NULL)
        return NULL;
    threads->kind = THREADS_KIND;
    threads->size = size;
    threads->loop = loop;
    threads->heartbeat = worker->stream.net.heartbeat;
    STAILQ_INIT(&threads->finished);
    LIST_INIT(&threads->running);
    pthread_mutex_init(&threads->mutex, NULL);
    next = (pthread_t *)((char *)threads + size);
    for (const struct fb_pool *pool = first; pool != NULL; pool = pool->next) {
        struct pool *own = &threads->pools[threads->pool_n];

        assert(pool->index == threads->pool_n);
        threads->pool_n++;
        next -= pool->threads;
        *own = (struct pool) { .settings = pool, .owner = threads, .threads = next };
        STAILQ_INIT(&own->queue);
        pthread_cond_init(&own->wanted, NULL);
    }
    if (loop_set_notified(loop, finish_jobs) == 0)
        return threads;
    os_wiped_free(threads, size);
    return NULL;
}

/* Starts a thread that blocks every signal: signals are handled by the loop's thread. */
static bool start_thread(struct pool *pool)
{
    sigset_t all, saved;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    error = pthread_create(&pool->threads[pool->n], NULL, run_jobs, pool);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    pool->n += error == 0;
    pool->owner->n += error == 0;
    return error == 0;
}

/* Queues a job, with the mutex held; false when the queue is full, or no thread starts. */
static bool enqueue(struct pool *pool, struct job *job, bool may_start)
{
    unsigned most = (unsigned)pool->settings->threads;

    assert(most > 0 && pool->n <= most && pool->idle <= pool->n);
    if (pool->queued >= pool->settings->queue)
        return false;
    if (may_start && pool->idle <= pool->queued && pool->n < most && !start_thread(pool) &&
        pool->n == 0)
        return false;
    STAILQ_INSERT_TAIL(&pool->queue, job, link);
    pool->queued++;
    pthread_cond_signal(&pool->wanted);
    return true;
}

int jobs_run(struct fb_worker *handle, const struct fb_pool *pool, void (*work)(void *job),
    job_done *done, const void *job, size_t n)
{
    struct worker *worker = worker_of(handle);
    struct threads *threads;
    struct job *copy;
    bool accepted;

    assert(work != NULL && done != NULL);
    if (worker->phase >= WORKER_ENDING) /* `done` would never be called */
        return -1;
    if (worker->threads == NULL)
        worker->threads = create_threads(worker);
    threads = worker->threads;
    copy = threads != NULL ? create_job(handle, work, done, job, n) : NULL;
    if (copy == NULL)
        return -1;
    assert(pool->index < threads->pool_n); /* a pool of this configuration */
    assert(threads->pools[pool->index].settings == pool);
    pthread_mutex_lock(&threads->mutex);
    accepted = enqueue(&threads->pools[pool->index], copy, worker->phase > WORKER_STARTING);
    pthread_mutex_unlock(&threads->mutex);
    threads->busy += accepted;
    if (!accepted)
        memory_release(worker->stream.net.memory, copy);
    return accepted ? 0 : -1;
}

int jobs_begin(struct worker *worker)
{
    struct threads *threads = worker->threads;
    int result = 0;

    assert(worker->phase == WORKER_STARTING);
    if (threads == NULL)
        return 0;
    CHECK_KIND(threads, THREADS_KIND);
    pthread_mutex_lock(&threads->mutex);
    for (unsigned i = 0; i < threads->pool_n; i++) {
        struct pool *pool = &threads->pools[i];
        unsigned wanted = pool->queued;

        while (
            pool->n < wanted && pool->n < (unsigned)pool->settings->threads && start_thread(pool))
            continue;
        if (wanted > 0 && pool->n == 0)
            result = -1;
    }
    pthread_mutex_unlock(&threads->mutex);
    if (result == -1)
        log_write(&worker->log, LEVEL_EMERG, 0, "no thread could be started for the first jobs");
    return result;
}

unsigned jobs_busy(const struct worker *worker)
{
    return worker->threads != NULL ? worker->threads->busy : 0;
}

void jobs_done(struct worker *worker)
{
    struct threads *threads = worker->threads;

    assert(worker->phase == WORKER_ENDING);
    if (worker->posts.source != NULL) {
        discard_queue(worker, &worker->posts.queue);
        source_close(&worker->stream.net.loop, worker->posts.source, false);
        worker->posts.source = NULL;
    }
    if (threads == NULL)
        return;
    CHECK_KIND(threads, THREADS_KIND);
    worker->threads = NULL;
    pthread_mutex_lock(&threads->mutex);
    threads->ending = true;
    for (unsigned i = 0; i < threads->pool_n; i++) {
        discard_queue(worker, &threads->pools[i].queue);
        threads->pools[i].queued = 0;
        pthread_cond_broadcast(&threads->pools[i].wanted);
    }
    pthread_mutex_unlock(&threads->mutex);
    if (threads->busy > 0 && threads->n > 0)
        return; /* a job may take for ever: threads and memory are left to the process's end */
    for (unsigned i = 0; i < threads->pool_n; i++) {
        for (unsigned k = 0; k < threads->pools[i].n; k++)
            pthread_join(threads->pools[i].threads[k], NULL);
        pthread_cond_destroy(&threads->pools[i].wanted);
    }
    pthread_mutex_destroy(&threads->mutex);
    threads->kind = 0;
    os_wiped_free(threads, threads->size);
}

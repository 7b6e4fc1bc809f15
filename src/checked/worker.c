/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls on a worker with checks beyond a row of calls.def: connections, statistics, jobs,
 * posts, watches. Functions called later by the worker run within a scope. */
#include "checked/calls.h"
#include "sdk/handle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

fb_conn *checked_find(fb_worker *worker, fb_ref ref)
{
    worker = checked_worker(worker, CHECKED_CALL);
    return worker != NULL ? checked_handle_of(fb_find(worker, ref)) : NULL;
}

void checked_get_statistics(fb_worker *worker, fb_statistics *out)
{
    worker = checked_worker(worker, CHECKED_CALL);
    if (worker == NULL || !checked_given(CHECKED_CALL, out, "out"))
        return;
    if (out->size < sizeof(out->size) || out->size > UINT16_MAX)
        checked_report_call(NULL, CHECKED_CALL, "with a struct whose size is %zu", out->size);
    else
        fb_get_statistics(worker, out);
}

/* ---- Jobs and posts ---- */

/* The header of a protocol's bytes; a red zone follows the bytes. */
struct job {
    _Alignas(max_align_t) void (*work)(void *job);
    void (*done)(fb_worker *worker, void *job);
    const fb_protocol *protocol;
    struct checked *checked;
    size_t n;
    _Alignas(max_align_t) char bytes[];
};

static void *job_bytes(struct job *job)
{
    return job->n > 0 ? job->bytes : NULL;
}

static void check_job(const struct job *job, const char *what)
{
    if (!checked_zone_is_whole(job->bytes + job->n))
        checked_report(NULL, "went beyond the %zu bytes of its job, in %s", job->n, what);
}

static void run_work(void *p)
{
    struct job *job = p;
    struct checked_scope scope = {
        .place = CHECKED_JOB,
        .callback = "a job",
        .protocol = job->protocol,
        .checked = job->checked,
    };

    checked_scope_enter(&scope);
    job->work(job_bytes(job));
    check_job(job, "a job of fb_run()");
    checked_scope_leave(&scope);
}

static void run_done(fb_worker *worker, void *p)
{
    struct job *job = p;
    struct checked_scope scope;

    checked_enter_worker(&scope, worker, "done");
    job->done(worker, job_bytes(job));
    check_job(job, "\"done\"");
    checked_leave_worker(&scope, worker);
}

static void run_post(fb_worker *worker, void *p)
{
    struct job *job = p;
    struct checked_scope scope;

    checked_enter_worker(&scope, worker, "fb_post()");
    job->done(worker, job_bytes(job));
    check_job(job, "a post");
    checked_leave_worker(&scope, worker);
}

/* Makes a job of a protocol's bytes; NULL without memory. */
static struct job *make_job(const fb_worker *worker, const void *p, size_t n, size_t *whole)
{
    struct job *job;

    if (n > SIZE_MAX / 4)
        return NULL;
    *whole = sizeof(*job) + n + CHECKED_ZONE;
    job = malloc(*whole);
    if (job == NULL)
        return NULL;
    job->protocol = worker->protocol;
    job->checked = checked_of(worker->worker);
    job->n = n;
    if (n > 0)
        memcpy(job->bytes, p, n);
    checked_zone_fill(job->bytes + n);
    return job;
}

static int run_job(fb_worker *worker, const fb_pool *pool, void (*work)(void *job),
    void (*done)(fb_worker *worker, void *job), const void *p, size_t n, const char *call)
{
    struct job *job;
    size_t whole;
    int result;

    worker = checked_worker(worker, call);
    if (worker == NULL || !checked_given(call, (const void *)(uintptr_t)work, "work") ||
        !checked_given(call, (const void *)(uintptr_t)done, "done") ||
        !checked_bytes(call, p, n, "job"))
        return -1;
    if (checked_protocol_of(worker->protocol) == NULL)
        return fb_run_in(worker, pool, work, done, p, n);
    job = make_job(worker, p, n, &whole);
    if (job == NULL)
        return -1;
    job->work = work;
    job->done = done;
    result = fb_run_in(worker, pool, run_work, run_done, job, whole);
    free(job);
    return result;
}

int checked_run(fb_worker *worker, void (*work)(void *job),
    void (*done)(fb_worker *worker, void *job), const void *job, size_t n)
{
    return run_job(worker, NULL, work, done, job, n, CHECKED_CALL);
}

/* Whether the pool belongs to the worker's configuration. */
static bool check_pool_handle(const fb_worker *worker, const fb_pool *pool, const char *call)
{
    const fb_pool *own = &worker->worker->cycle->core.pool;

    while (own != NULL && own != pool)
        own = own->next;
    if (own != NULL || pool == NULL)
        return true;
    checked_report_call(NULL, call, "with a pool that is none of this configuration");
    return false;
}

int checked_run_in(fb_worker *worker, const fb_pool *pool, void (*work)(void *job),
    void (*done)(fb_worker *worker, void *job), const void *job, size_t n)
{
    if (checked_worker(worker, CHECKED_CALL) == NULL ||
        !check_pool_handle(worker, pool, CHECKED_CALL))
        return -1;
    return run_job(worker, pool, work, done, job, n, CHECKED_CALL);
}

int checked_post(
    fb_worker *worker, void (*run)(fb_worker *worker, void *work), const void *work, size_t n)
{
    struct job *job;
    size_t whole;
    int result;

    worker = checked_worker(worker, CHECKED_CALL);
    if (worker == NULL || !checked_given(CHECKED_CALL, (const void *)(uintptr_t)run, "run") ||
        !checked_bytes(CHECKED_CALL, work, n, "work"))
        return -1;
    if (checked_protocol_of(worker->protocol) == NULL)
        return fb_post(worker, run, work, n);
    job = make_job(worker, work, n, &whole);
    if (job == NULL)
        return -1;
    job->done = run;
    result = fb_post(worker, run_post, job, whole);
    free(job);
    return result;
}

/* ---- Watches ---- */

static struct checked_watch *find_checked_watch(
    const struct checked *checked, const fb_watch *watch)
{
    struct checked_watch *made;

    SLIST_FOREACH (made, &checked->watches, link)
        if (made->watch == watch)
            break;
    return made;
}

static void watch_is_ready(fb_worker *worker, fb_watch *watch, unsigned events, void *arg)
{
    const struct checked_watch *made = arg;
    struct checked_scope scope;

    assert(made->watch == watch);
    checked_enter_worker(&scope, worker, "ready");
    made->ready(worker, watch, events, made->arg);
    checked_leave_worker(&scope, worker);
}

fb_watch *checked_watch_fd(fb_worker *worker, int fd, unsigned events,
    void (*ready)(fb_worker *worker, fb_watch *watch, unsigned events, void *arg), void *arg)
{
    struct checked_watch *made;
    struct checked *checked;

    worker = checked_worker(worker, CHECKED_CALL);
    if (worker == NULL || !checked_given(CHECKED_CALL, (const void *)(uintptr_t)ready, "ready"))
        return NULL;
    if (checked_protocol_of(worker->protocol) == NULL)
        return fb_watch_fd(worker, fd, events, ready, arg);
    checked = checked_of(worker->worker);
    made = malloc(sizeof(*made));
    if (made == NULL)
        return NULL;
    *made = (struct checked_watch) { .ready = ready, .arg = arg };
    made->watch = fb_watch_fd(worker, fd, events, watch_is_ready, made);
    if (made->watch == NULL) {
        free(made);
        return NULL;
    }
    checked_not_gone(checked, made->watch);
    SLIST_INSERT_HEAD(&checked->watches, made, link);
    return (fb_watch *)(uintptr_t)made->watch;
}

void checked_unwatch(fb_watch *watch)
{
    struct checked *checked;
    struct checked_watch *made;

    watch = checked_watch(watch, CHECKED_CALL);
    if (watch == NULL)
        return;
    checked = checked_of(watch->handle->worker);
    made = find_checked_watch(checked, watch);
    if (made != NULL) {
        SLIST_REMOVE(&checked->watches, made, checked_watch, link);
        free(made);
    }
    checked_gone(checked, watch);
    fb_unwatch(watch);
}

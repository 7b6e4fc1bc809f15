/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the worker calls later, within a scope: jobs, posts, watches and resolutions of
 * names. A resolution is known from the call to the callback, the cancellation, or the end of the
 * owner or of the worker's protocols. */
#include "checked/calls.h"
#include "sdk/handle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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
    if (!checked_is_filled(job->bytes + job->n, CHECKED_ZONE))
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

/* Runs the `done` of a job, or a post. */
static void run_done(fb_worker *worker, void *p)
{
    struct job *job = p;
    struct checked_scope scope;

    checked_enter_worker(&scope, worker, job->work != NULL ? "done" : "fb_post()");
    job->done(worker, job_bytes(job));
    check_job(job, job->work != NULL ? "\"done\"" : "a post");
    checked_leave_worker(&scope, worker);
}

/* Makes a job of a protocol's bytes; NULL without memory. */
static struct job *make_job(const fb_worker *worker, const void *p, size_t n)
{
    struct job *job;

    if (n > SIZE_MAX / 4)
        return NULL;
    job = malloc(sizeof(*job) + n + CHECKED_ZONE);
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

int checked_job_run(fb_worker *worker, const fb_pool *pool, void (*work)(void *job),
    void (*done)(fb_worker *worker, void *job), const void *p, size_t n)
{
    bool is_checked = checked_protocol_of(worker->protocol) != NULL;
    struct job *job = NULL;
    int result;

    if (is_checked) {
        job = make_job(worker, p, n);
        if (job == NULL)
            return -1;
        job->work = work;
        job->done = done;
        n += sizeof(*job) + CHECKED_ZONE;
        p = job;
        done = run_done;
    }
    if (work == NULL)
        result = fb_post(worker, done, p, n);
    else
        result = fb_run_in(worker, pool, is_checked ? run_work : work, done, p, n);
    free(job);
    return result;
}

/* ---- Watches ---- */

static void watch_is_ready(fb_worker *worker, fb_watch *watch, unsigned events, void *arg)
{
    const struct checked_object *made = arg;
    struct checked_scope scope;

    assert(made->object == watch);
    checked_enter_worker(&scope, worker, "ready");
    made->callback.ready(worker, watch, events, made->arg);
    checked_leave_worker(&scope, worker);
}

fb_watch *checked_watch_fd(fb_worker *worker, int fd, unsigned events,
    void (*ready)(fb_worker *worker, fb_watch *watch, unsigned events, void *arg), void *arg)
{
    struct checked_object *made;

    if (!WORKER(worker) || !GIVEN(ready))
        return NULL;
    if (checked_protocol_of(worker->protocol) == NULL)
        return fb_watch_fd(worker, fd, events, ready, arg);
    made = checked_object_make(OBJECT_WATCH, NULL, arg);
    if (made == NULL)
        return NULL;
    made->callback.ready = ready;
    return checked_object_begin(
        checked_of(worker->worker), made, fb_watch_fd(worker, fd, events, watch_is_ready, made));
}

/* ---- Names ---- */

static void is_resolved(fb_worker *worker, const fb_names *names, void *arg)
{
    struct checked_object own = *(struct checked_object *)arg;
    struct checked_scope scope;

    checked_object_end(checked_of(worker->worker), OBJECT_RESOLUTION, own.object);
    checked_enter_worker(&scope, worker, "resolved");
    own.callback.resolved(worker, names, own.arg);
    checked_leave_worker(&scope, worker);
}

fb_resolution *checked_resolve(fb_worker *worker, const char *name, fb_name_type type,
    const fb_resolve_options *options,
    void (*resolved)(fb_worker *worker, const fb_names *names, void *arg), void *arg)
{
    struct checked_object *made;
    fb_resolve_options own;

    if (!WORKER(worker) || !OPTIONS(&own, options) || (own.owner != NULL && !CONN(own.owner)) ||
        !GIVEN(resolved))
        return NULL;
    if (checked_protocol_of(worker->protocol) == NULL)
        return fb_resolve(worker, name, type, &own, resolved, arg);
    made = checked_object_make(
        OBJECT_RESOLUTION, own.owner != NULL ? checked_slot_of(own.owner) : NULL, arg);
    if (made == NULL)
        return NULL;
    made->callback.resolved = resolved;
    return checked_object_begin(
        checked_of(worker->worker), made, fb_resolve(worker, name, type, &own, is_resolved, made));
}

void checked_resolve_cancel(fb_resolution *resolution)
{
    struct checked *checked = checked_resolution(resolution, CHECKED_CALL);

    if (checked == NULL)
        return;
    checked_object_end(checked, OBJECT_RESOLUTION, resolution);
    fb_resolve_cancel(resolution);
}

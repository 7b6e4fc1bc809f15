/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets the workers work, and time pass. The workers run only within calls of these functions, in
 * the order of worker numbers, and a call returns when no work is left. */
#include "kit/kit.h"

/* Turns without a pause before a fault reports a worker that never becomes idle. */
#define TURNS_MAX 100000
/* Turns of a restless worker from then on. */
#define RESTLESS_TURNS 100
/* Time for a job of fb_run(), ms of the real clock. */
#define JOB_MS 60000

/* Notes the end of the jobs that have begun in the present turn. */
static void note_jobs(fb_test *test, struct kit_worker *own)
{
    unsigned n = jobs_busy(&own->worker);

    if (n > own->jobs)
        test->jobs_due = test->sim->clock.mono_ms + test->job_ms;
    own->jobs = n;
}

/* Whether jobs take their time. */
static bool jobs_wait(const fb_test *test)
{
    return test->jobs_due > test->sim->clock.mono_ms;
}

/* Whether the turn has made work for a worker. */
static bool turn_workers(fb_test *test)
{
    struct kit_worker *own;
    bool served;

    test->sim->holds_notices = jobs_wait(test);
    KIT_FOREACH_ALIVE(own, test)
    {
        worker_turn(&own->worker);
        note_jobs(test, own);
        kit_states_check(own);
        test->sim->holds_notices = jobs_wait(test);
    }
    served = kit_master_serve(test);
    kit_names_serve(test);
    return served;
}

void kit_worker_await_job(struct kit_worker *own)
{
    if (!sim_await_notice(kit_loop_of(own), JOB_MS))
        kit_misused("a job of fb_run() has not ended after %d s", JOB_MS / 1000);
}

/* Whether there is more to do. Waits for the jobs of threads. */
static bool workers_have_work(fb_test *test)
{
    struct kit_worker *own;

    KIT_FOREACH_ALIVE(own, test)
    if (!sim_idle(kit_loop_of(own)))
        return true;
    KIT_FOREACH_ALIVE(own, test)
    {
        if (jobs_busy(&own->worker) == 0 || jobs_wait(test))
            continue;
        kit_worker_await_job(own);
        return true;
    }
    return false;
}

/* Ends all drained workers, as their processes would end; returns whether there was any. */
static bool end_drained(fb_test *test)
{
    struct kit_worker *own;
    bool any = false;

    if (!test->several)
        return false;
    KIT_FOREACH_ALIVE(own, test)
    if (own->worker.phase >= WORKER_DRAINING && worker_has_ended(&own->worker)) {
        kit_ways_flush(test, own);
        kit_master_tell_gone(test, own);
        kit_worker_end(own);
        any = true;
    }
    return any;
}

void fb_test_run(fb_test *test)
{
    unsigned turns = test->restless ? RESTLESS_TURNS : TURNS_MAX;
    struct kit_worker *own;
    bool served;

    CHECK_KIND(test, KIT_TEST);
    KIT_FOREACH_ALIVE(own, test)
    net_flush(&own->worker.stream.net); /* after the test's own calls */
    do
        served = turn_workers(test);
    while ((served || workers_have_work(test) || end_drained(test)) && --turns > 0);
    if (turns > 0 || test->restless)
        return;
    kit_fault(test, "the worker does not come to rest");
    test->restless = true;
}

/* The time until the next timer or the time limit of a job, at most `most` ms. */
static uint64_t distance_of(fb_test *test, uint64_t most)
{
    struct kit_worker *own;

    if (jobs_wait(test) && test->jobs_due - test->sim->clock.mono_ms < most)
        most = test->jobs_due - test->sim->clock.mono_ms;
    KIT_FOREACH_ALIVE(own, test)
    {
        int distance = timers_wait(&kit_loop_of(own)->timers);

        if (distance > 0 && (uint64_t)distance < most)
            most = (uint64_t)distance;
    }
    return most;
}

int fb_test_pass_until(fb_test *test, int (*done)(fb_test *test, void *arg), void *arg, uint64_t ms)
{
    fb_test_run(test);
    while (done == NULL || !done(test, arg)) {
        uint64_t step;

        if (ms == 0)
            return 0;
        step = distance_of(test, ms);
        assert(step > 0 && step <= ms);
        sim_pass(test->sim, step);
        fb_test_run(test);
        ms -= step;
    }
    return 1;
}

void fb_test_pass(fb_test *test, uint64_t ms)
{
    fb_test_pass_until(test, NULL, NULL, ms);
}

uint64_t fb_test_now(const fb_test *test)
{
    CHECK_KIND(test, KIT_TEST);
    return test->sim->clock.mono_ms - test->began;
}

void fb_test_jobs_take(fb_test *test, uint64_t ms)
{
    CHECK_KIND(test, KIT_TEST);
    test->job_ms = ms;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets the worker do its work, time pass, and the worker drain. The worker runs only within these
 * calls, and each returns when nothing is left to do. */
#include "kit/kit.h"
#include "worker/commands.h"
#include "worker/threads.h"

/* Turns without a pause after which a fault reports that the worker never becomes idle. */
#define TURNS_MAX 100000
/* Turns that such a worker gets from then on. */
#define RESTLESS_TURNS 100
/* Time for a job of fb_run(), ms of the real clock. */
#define JOB_MS 60000

static struct loop *loop_of(fb_test *test)
{
    return &test->worker.stream.net.loop;
}

/* Whether there is more to do. Waits for the jobs of threads. */
static bool has_work(fb_test *test)
{
    if (!sim_idle(loop_of(test)))
        return true;
    if (threads_busy(&test->worker) == 0)
        return false;
    if (!sim_await_notice(loop_of(test), JOB_MS))
        kit_misused("a job of fb_run() has not ended after %d s", JOB_MS / 1000);
    return true;
}

void fb_test_run(fb_test *test)
{
    unsigned turns = test->restless ? RESTLESS_TURNS : TURNS_MAX;

    CHECK_KIND(test, KIT_TEST);
    net_flush(&test->worker.stream.net); /* after calls that the test has made itself */
    do
        worker_turn(&test->worker);
    while (has_work(test) && --turns > 0);
    if (turns > 0 || test->restless)
        return;
    kit_fault(test, "the worker does not come to rest");
    test->restless = true;
}

void fb_test_pass(fb_test *test, uint64_t ms)
{
    fb_test_run(test);
    while (ms > 0) {
        int distance = timers_wait(&loop_of(test)->timers);
        uint64_t step = distance <= 0 || (uint64_t)distance > ms ? ms : (uint64_t)distance;

        assert(step > 0 && step <= ms);
        sim_pass(test->sim, step);
        fb_test_run(test);
        ms -= step;
    }
}

void fb_test_drain(fb_test *test, uint64_t deadline)
{
    fb_test_run(test);
    test->cycle->core.worker_shutdown_timeout = (int64_t)deadline;
    signals_raise(COMMAND_QUIT);
    worker_take_commands(&test->worker);
    fb_test_run(test);
}

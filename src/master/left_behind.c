/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the workers by their lists. A signal goes through a process handle, and so never to a
 * reused pid. The workers are no children: a timer polls for their end. */
#include "master/left_behind.h"

#include "base/compiler.h"
#include "process/process_ops.h"
#include "process/role.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>

#define STATUS_MAX 256 /* workers in the status, the first ones */
#define LOOK_MS 20
/* Time to end, as a worker of ours has, and then time to die. */
#define KILL_MS 2000

struct report {
    unsigned n;
    char pids[128]; /* the first ones, separated by spaces */
    size_t length;
    pid_t master; /* the first one's */
};

static void add_pid(void *arg, const struct left_worker *worker)
{
    struct report *report = arg;
    size_t room = sizeof(report->pids) - report->length;
    int n = snprintf(report->pids + report->length, room, " %d", (int)worker->pid);

    if (report->n++ == 0)
        report->master = worker->master;
    if (n > 0 && (size_t)n + sizeof(" ...") <= room)
        report->length += (size_t)n;
    else if (report->length + sizeof(" ...") <= sizeof(report->pids))
        snprintf(report->pids + report->length, room, " ...");
}

void left_behind_report(const struct left_behind *left)
{
    struct report report = { .n = 0 };

    worker_list_find_left(left->pool->list, add_pid, &report);
    worker_list_tidy(left->pool->list);
    if (report.n > 0)
        log_write(left->pool->log, LEVEL_ALERT, 0,
            "%u worker process%s of master process %d, which was killed, still ha%s sessions:%s "
            "(\"kill -INT\" ends the processes, as a fast shutdown does)",
            report.n, report.n == 1 ? "" : "es", (int)report.master, report.n == 1 ? "s" : "ve",
            report.pids);
}

static void signal_left(void *arg, const struct left_worker *worker)
{
    const int *number = arg;

    process_ops->handle_signal(worker->handle, *number);
}

static void look_at_left(struct loop *loop, struct timer *timer)
{
    struct left_behind *left = container_of(timer, struct left_behind, look);
    uint64_t now = left->pool->clock->mono_ms;
    int number = now < left->killed_at ? 0 : SIGKILL;

    (void)loop;
    if (worker_list_find_left(left->pool->list, signal_left, &number) > 0 &&
        now < left->killed_at + KILL_MS)
        timers_arm(left->pool->timers, timer, LOOK_MS);
    else
        left->killed_at = 0;
}

void left_behind_end(struct left_behind *left)
{
    int number = SIGINT;
    unsigned n = worker_list_find_left(left->pool->list, signal_left, &number);

    assert(role_is(ROLE_MASTER));
    if (n == 0)
        return;
    log_write(left->pool->log, LEVEL_NOTICE, 0,
        "%u worker process%s of a killed master process %s told to end", n, n == 1 ? "" : "es",
        n == 1 ? "is" : "are");
    left->killed_at = left->pool->clock->mono_ms + KILL_MS;
    left->look.expired = look_at_left;
    timers_arm(left->pool->timers, &left->look, LOOK_MS);
}

/* Workers written to the status. */
struct listing {
    struct json *json;
    unsigned n;
};

static void write_left(void *arg, const struct left_worker *worker)
{
    struct listing *listing = arg;

    if (listing->n++ >= STATUS_MAX)
        return;
    json_object(listing->json, NULL);
    json_number(listing->json, "pid", worker->pid);
    json_number(listing->json, "master", worker->master);
    json_close(listing->json);
}

void left_behind_write(const struct left_behind *left, struct json *json)
{
    struct listing listing = { .json = json };

    json_array(json, "left_behind");
    worker_list_find_left(left->pool->list, write_left, &listing);
    json_close(json);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds problems of workers, of listeners, of certificates and of groups of servers. */
#include "control/problems.h"

#include "control/upstream.h"
#include "control/worker_state.h"
#include "os/sockets.h"
#include "pool/worker.h"
#include "process/process_ops.h"
#include "tls/engine.h"

#include <inttypes.h>
#include <stdio.h>

#define DAY 86400
#define LOST_MS (5 * 60 * 1000) /* how long lost lines are a problem */

/* Formats what stops a stuck worker. */
static void format_watchdog(const struct pool_worker *worker, char text[128])
{
    int64_t ms = worker->generation->cycle->core.worker_watchdog;

    if (ms > 0)
        snprintf(text, 128, "worker_watchdog ends this after %" PRId64 " s, kill -ABRT %d at once",
            (ms + 999) / 1000, (int)worker->pid);
    else
        snprintf(text, 128, "worker_watchdog is off: kill -ABRT %d", (int)worker->pid);
}

static void add_worker(
    const struct control *control, const struct pool_worker *worker, struct problems *problems)
{
    const char *title = pool_worker_title(worker);
    struct worker_state state;
    char advice[128];

    control_worker_state(control, worker, &state);
    switch (state.trouble) {
    case WORKER_WELL:
        return;
    case WORKER_ENDED:
        problem_add(problems, PROBLEM_WARNING, "the error log says why it has ended",
            "%s %u of generation %u has ended, and starts again soon", title, worker->index,
            worker->generation->number);
        return;
    case WORKER_STOPPED:
        snprintf(advice, sizeof(advice), "kill -CONT %d, or end the debugger", (int)worker->pid);
        problem_add(problems, PROBLEM_CRITICAL, advice, "%s %d is stopped, and its clients wait",
            title, (int)worker->pid);
        return;
    case WORKER_STUCK:
        format_watchdog(worker, advice);
        problem_add(problems, PROBLEM_CRITICAL, advice,
            "%s %d is stuck %s for %" PRIu64 ".%" PRIu64 " s, and its clients wait", title,
            (int)worker->pid, state.where, state.stuck_ms / 1000, state.stuck_ms % 1000 / 100);
        return;
    case WORKER_PAUSED:
        problem_add(problems, PROBLEM_CRITICAL,
            "raise worker_rlimit_nofile, or give the machine memory: see the error log",
            "%s %d has no descriptor or no memory, and accepts no clients", title,
            (int)worker->pid);
        return;
    case WORKER_FULL:
        problem_add(problems, PROBLEM_CRITICAL, "raise worker_connections, or limit_conn",
            "%s %d uses all of its %" PRId64 " worker_connections, and accepts no clients", title,
            (int)worker->pid, worker->generation->cycle->events.worker_connections);
        return;
    }
}

/* Warns of a lack of descriptors: without any a worker accepts no clients. */
static void add_descriptors(const struct pool_worker *worker, struct problems *problems)
{
    struct proc_usage usage;

    if (worker->pid == 0)
        return;
    process_ops->proc_usage(worker->pid, &usage);
    if (usage.descriptors_max > 0 && usage.descriptors * 10 > usage.descriptors_max * 9)
        problem_add(problems, PROBLEM_WARNING, "raise worker_rlimit_nofile",
            "%s %d uses %" PRId64 " of %" PRId64 " descriptors", pool_worker_title(worker),
            (int)worker->pid, usage.descriptors, usage.descriptors_max);
}

static void add_workers(const struct control *control, struct problems *problems)
{
    const struct generation *serving = control->pool->serving;
    const struct pool_worker *worker;

    if (serving->crashing)
        problem_add(problems, PROBLEM_CRITICAL,
            "the error log says why; mend the configuration or the module, and reload",
            "all workers of generation %u crash, and no client is served", serving->number);
    POOL_FOREACH_WORKER (worker, control->pool) {
        add_worker(control, worker, problems);
        add_descriptors(worker, problems);
    }
}

/* Tells of the certificate with the first end, if soon, as known to the first keeper. */
static void add_certificate(const struct control *control, struct problems *problems)
{
    static const char advice[] = "renew the certificate: see forkbeard certificates";
    const struct generation *serving = control->pool->serving;
    const struct tls_profiles *profiles = &serving->cycle->tls;
    const struct pool_worker *keeper = &serving->workers[serving->serve_n];
    const struct slot_expiry *expiry;
    int64_t end, left;
    uint32_t file;

    if (serving->keeper_n == 0 || keeper->pid == 0)
        return;
    expiry = &shared_slot(control->pool->shared, keeper->slot)->expiry;
    end = atomic_load_explicit(&expiry->end, memory_order_relaxed);
    file = atomic_load_explicit(&expiry->file, memory_order_relaxed);
    left = end - control->pool->clock->wall_ms / 1000;
    if (end <= 0 || file >= profiles->file_n || left > TLS_EXPIRY_DAYS * DAY)
        return;
    if (left <= 0)
        problem_add(problems, PROBLEM_CRITICAL, advice, "certificate %s has expired %.1f days ago",
            profiles->files[file].path, (double)-left / DAY);
    else
        problem_add(problems, PROBLEM_WARNING, advice, "certificate %s expires in %.1f days",
            profiles->files[file].path, (double)left / DAY);
}

static void add_lost_lines(const struct control *control, struct problems *problems)
{
    if (control->lost_ms != 0 && control->pool->clock->mono_ms - control->lost_ms < LOST_MS)
        problem_add(problems, PROBLEM_WARNING,
            "look at disks, pipes and syslog servers of the logs; alerts name the log",
            "log lines were lost, %" PRIu64 " since the start", control->lost);
}

/* Clients wait where a socket's queue is nearly full, and are turned away where it is full. */
static void add_queues(const struct control *control, struct problems *problems)
{
    const struct listener *listener;

    STAILQ_FOREACH (listener, &control->pool->serving->cycle->stream.listeners.list, link) {
        if (listener->address.any.sa_family == AF_UNIX)
            continue;
        for (unsigned i = 0; i < listener->fd_n; i++) {
            unsigned backlog, queue;

            if (listener->fds[i] == -1 ||
                os_listening_queue(listener->fds[i], &backlog, &queue) == -1 || queue == 0 ||
                queue < backlog - backlog / 4)
                continue;
            problem_add(problems, queue < backlog ? PROBLEM_WARNING : PROBLEM_CRITICAL,
                "see why workers do not accept; more room: listen ... backlog=, net.core.somaxconn",
                "%u clients wait at %s, whose queue has room for %u", queue, listener->text,
                backlog);
            break;
        }
    }
}

void control_problems_write(const struct control *control, struct json *json)
{
    struct problems problems = { .json = json };

    json_array(json, "problems");
    add_workers(control, &problems);
    add_queues(control, &problems);
    add_certificate(control, &problems);
    add_lost_lines(control, &problems);
    control_upstream_problems(control, &problems);
    control->ops->add_problems(control->host, &problems);
    json_close(json);
    json_number(json, "problems_left_out", problems.left_out);
}

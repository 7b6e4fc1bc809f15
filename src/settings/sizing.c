/* SPDX-License-Identifier: BSD-2-Clause */
/* Works out `worker_connections auto`, and checks a written number against the memory, whose size
 * is read only if it matters. */
#include "base/check.h"
#include "os/limits.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "shm/slot.h"

#include <inttypes.h>
#include <sys/resource.h>

#define MIB (INT64_C(1) << 20)
#define AUTO_MAX (INT64_C(1) << 20)
#define AUTO_LEAST 16

/* Bytes that auto plans for a connection: the slot, the kernel's socket, and a share of buffers.
 * One quarter of the memory is left for everything else. */
#define PLANNED_BYTES (32 * 1024)
/* Least bytes of a connection in a control group: the slot, the file and the inode. */
#define LEAST_BYTES (2 * 1024)
/* Connections of so many bytes fit into the memory of any machine. */
#define SURE_BYTES (8 * MIB)
/* Bytes of a draining worker with few sessions, and the least number left alone. */
#define DRAINING_BYTES (4 * MIB)
#define DRAINING_LEAST 16
/* A worker's other descriptors: logs, channels, the mechanism's. */
#define OTHER_DESCRIPTORS 64
/* Workers with a keeper each, beside those of the next generation. */
#define KEPT_WORKERS_MAX (SLOT_MAX / 4 - 1)

/* Counts the listening sockets and wake-up descriptors of every worker. */
static int64_t count_shared(const struct cycle *cycle, int64_t workers)
{
    const struct listener *listener;
    int64_t n = workers > 1 ? workers : 0;

    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link)
        n += listener->options.reuseport ? workers : 1;
    return n;
}

/* Returns how many descriptors a worker may have; 0: any number. */
static int64_t descriptor_limit(const struct cycle *cycle)
{
    int64_t limit = cycle->core.rlimit_nofile, most = cycle->events.mechanism->descriptors_max;
    struct rlimit limits;

    if (limit == -1 && getrlimit(RLIMIT_NOFILE, &limits) == 0 &&
        limits.rlim_cur <= (rlim_t)INT32_MAX)
        limit = (int64_t)limits.rlim_cur;
    if (limit <= 0)
        return most;
    return most > 0 && most < limit ? most : limit;
}

static void lower_to(int64_t *n, int64_t most)
{
    if (*n > most)
        *n = most;
}

static int64_t plan_connections(const struct cycle *cycle)
{
    const struct sizing *sizing = &cycle->sizing;
    int64_t n = AUTO_MAX;

    if (sizing->memory > 0)
        lower_to(&n, sizing->memory / 4 * 3 / sizing->workers / PLANNED_BYTES);
    if (sizing->descriptors > 0)
        lower_to(
            &n, sizing->descriptors - OTHER_DESCRIPTORS - count_shared(cycle, sizing->workers));
    if (stream_connects(&cycle->stream))
        n -= n % 2;
    return n > AUTO_LEAST ? n : AUTO_LEAST;
}

/* Works out `max_draining_workers auto`: a quarter of the memory, and half of the slots. */
static int64_t plan_draining(void)
{
    int64_t memory = os_ram_allowed(""), n = memory / 4 / DRAINING_BYTES;

    if (memory <= 0 || n > SLOT_MAX / 2)
        n = SLOT_MAX / 2;
    return n > DRAINING_LEAST ? n : DRAINING_LEAST;
}

static void check_memory(struct apply *apply, const struct sizing *sizing, int64_t n)
{
    if (sizing->memory > 0 && n > sizing->memory / LEAST_BYTES / sizing->workers)
        report_warn(apply->report, NULL,
            "%" PRId64 " \"worker_connections\" of each of %" PRId64
            " \"worker_processes\" need at least %" PRId64
            " MiB when all are in use, and there are %" PRId64
            " MiB: lower them, or use \"worker_connections auto\"",
            n, sizing->workers, n * sizing->workers / (MIB / LEAST_BYTES), sizing->memory / MIB);
}

void sizing_finish(struct apply *apply)
{
    struct cycle *cycle = apply->cycle;
    struct sizing *sizing = &cycle->sizing;
    int64_t *n = &cycle->events.worker_connections;

    CHECK_KIND(apply, APPLY_KIND);
    sizing->workers = cycle->core.master_process ? cycle->core.worker_processes : 1;
    assert(sizing->workers > 0 && *n >= 0);
    sizing->draining = cycle->core.max_draining_workers;
    if (sizing->draining == -1)
        sizing->draining = plan_draining();
    if (!cycle->events.connections_auto && *n == 1 && stream_connects(&cycle->stream))
        report_error(apply->report, NULL,
            "a value of 1 for \"worker_connections\" is not enough for a client and the connection "
            "to the server");
    if (cycle->tls.n > 0 && cycle->core.master_process && sizing->workers > KEPT_WORKERS_MAX)
        report_error(apply->report, NULL,
            "%" PRId64 " \"worker_processes\" are too many for TLS, with a keeper process each: "
            "set at most %d",
            sizing->workers, KEPT_WORKERS_MAX);
    if (!cycle->events.connections_auto && *n <= SURE_BYTES / LEAST_BYTES / sizing->workers)
        return;
    sizing->memory = os_ram_allowed("");
    sizing->descriptors = descriptor_limit(cycle);
    if (cycle->events.connections_auto)
        *n = plan_connections(cycle);
    else
        check_memory(apply, sizing, *n);
    assert(*n > 0);
}

void sizing_log(const struct cycle *cycle, struct log *log)
{
    const struct sizing *sizing = &cycle->sizing;

    if (cycle->events.connections_auto)
        log_write(log, LEVEL_NOTICE, 0,
            "worker_connections auto: %" PRId64 "%s, for %" PRId64 " worker processes, %" PRId64
            " MiB of memory and %" PRId64 " descriptors of each",
            cycle->events.worker_connections,
            stream_connects(&cycle->stream) ? ", two for a client and its server" : "",
            sizing->workers, sizing->memory / MIB, sizing->descriptors);
}

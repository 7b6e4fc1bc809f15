/* SPDX-License-Identifier: BSD-2-Clause */
/* A module that was taken over: each line names an attempt (sandbox/attempts.h), and is answered
 * with the errno's name, "0" on success; "thread ..." has a thread try it. PROBER_API is the
 * claimed API number, PROBER_NEEDS the declared needs. */
#include "sandbox/attempts.h"

#include <forkbeard/forkbeard.h>

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef PROBER_API
#define PROBER_API FB_API
#define PROBER_SIZE sizeof(fb_protocol)
#else
#define PROBER_SIZE offsetof(fb_protocol, needs)
#endif
#ifndef PROBER_NEEDS
#define PROBER_NEEDS 0
#endif

#define LINE_MOST 300

struct conf {
    const char *reads, *writes;
    int64_t threads;
    const fb_target *target;
};

struct job {
    fb_ref ref;
    int outcome;
    char words[LINE_MOST + 1];
};

static void send_answer(fb_conn *conn, int outcome)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%s\n",
        outcome == -1  ? "unknown"
        : outcome == 0 ? "0"
                       : strerrorname_np(outcome));

    fb_write(conn, text, (size_t)n);
}

/* The copy is the job's own until done. */
static void work_job(void *arg)
{
    struct job *job = arg;

    job->outcome = attempt(job->words);
}

static void finish_job(fb_worker *worker, void *arg)
{
    const struct job *job = arg;
    fb_conn *conn = fb_find(worker, job->ref);

    if (conn != NULL)
        send_answer(conn, job->outcome);
}

static void handle_command(fb_conn *conn, fb_bytes line)
{
    struct job job = { .ref = fb_ref_of(conn) };
    const char *thread = "thread ";

    memcpy(job.words, line.p, line.n);
    if (strncmp(job.words, thread, strlen(thread)) != 0) {
        send_answer(conn, attempt(job.words));
        return;
    }
    memmove(job.words, job.words + strlen(thread), sizeof(job.words) - strlen(thread));
    if (fb_run(fb_worker_of(conn), work_job, finish_job, &job, sizeof(job)) == -1)
        fb_abort(conn);
}

static size_t prober_data(fb_conn *conn, void *state, fb_bytes in)
{
    static const fb_frame_limit limit = { .most = LINE_MOST };
    fb_bytes rest = in, line;

    (void)state;
    while (fb_frame_until(conn, &rest, "\n", 1, &limit, &line))
        handle_command(conn, line);
    return in.n - rest.n;
}

static void *wait_for_ever(void *arg)
{
    pause();
    return arg;
}

static int threads_wanted;

static int prober_done(fb_conf *conf, void *own, const void *parent)
{
    const struct conf *values = own;

    (void)conf;
    (void)parent;
    threads_wanted = (int)values->threads;
    return 0;
}

static void log_first(fb_worker *worker, void *arg)
{
    const struct job *job = arg;

    fb_worker_logf(worker, FB_LOG_NOTICE, "the first job: %s",
        job->outcome == 0 ? "0" : strerrorname_np(job->outcome));
}

static int prober_start(fb_worker *worker, void *state)
{
    struct job job = { .words = "open /etc/passwd" };
    pthread_t thread;

    (void)state;
    if (fb_run(worker, work_job, log_first, &job, sizeof(job)) == -1)
        return -1;
    for (int i = 0; i < threads_wanted; i++)
        if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
            return -1;
    return 0;
}

static const fb_directive directives[] = {
    { .name = "prober", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "prober_reads",
        .value = FB_VALUE_STRING,
        .flags = FB_DIRECTIVE_READS,
        .offset = offsetof(struct conf, reads) },
    { .name = "prober_writes",
        .value = FB_VALUE_STRING,
        .flags = FB_DIRECTIVE_WRITES,
        .offset = offsetof(struct conf, writes) },
    { .name = "prober_threads",
        .value = FB_VALUE_NUMBER,
        .offset = offsetof(struct conf, threads) },
    { .name = "prober_target", .value = FB_VALUE_TARGET, .offset = offsetof(struct conf, target) },
};

static const fb_ops ops = { .size = sizeof(fb_ops), .data = prober_data };

FB_PROTOCOL(prober) = {
    .abi = FB_ABI,
    .api = PROBER_API,
    .size = PROBER_SIZE,
    .directive_size = sizeof(fb_directive),
    .name = "prober",
    .conf_state = sizeof(struct conf),
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
    .conf_done = prober_done,
    .worker_start = prober_start,
    .needs = PROBER_NEEDS,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* A module with trouble in the configured place: "trouble PLACE KIND". The place is set (the
 * directive's setter), done (conf_done), start (worker_start) or client (opened); the kind is fail,
 * exit, abort, hang, or stop (until continued). "trouble later MILLISECONDS" ends the worker by a
 * signal this long after all workers have started, "trouble first MILLISECONDS" the first worker
 * alone. A metric makes the daemon open a zone. */
#include <forkbeard/forkbeard.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef TROUBLE
#define TROUBLE "trouble"
#endif

#define LOOK_MS 5

enum { LOOK, END }; /* the worker's timers */

static char place[16], kind[16];
static atomic_uint *started; /* workers of the configuration that have reported to the master */
static bool counted, dies;   /* this worker */

static int meet_trouble(const char *here)
{
    if (strcmp(place, here) != 0)
        return 0;
    if (strcmp(kind, "exit") == 0)
        _exit(5);
    if (strcmp(kind, "abort") == 0) {
        signal(SIGABRT, SIG_DFL);
        raise(SIGABRT);
    }
    if (strcmp(kind, "stop") == 0)
        return raise(SIGSTOP);
    while (strcmp(kind, "hang") == 0)
        pause();
    return -1;
}

static int set_trouble(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    (void)value;
    (void)n;
    strncpy(place, args[0], sizeof(place) - 1);
    strncpy(kind, args[1], sizeof(kind) - 1);
    started =
        mmap(NULL, sizeof(*started), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (started == MAP_FAILED)
        return fb_conf_errorf(conf, NULL, "no memory to count workers");
    if (meet_trouble("set") == 0)
        return 0;
    return fb_conf_errorf(conf, NULL, "the setter has trouble");
}

static int trouble_done(fb_conf *conf, void *own, const void *parent)
{
    (void)own;
    (void)parent;
    if (meet_trouble("done") == 0)
        return 0;
    return fb_conf_errorf(conf, NULL, "conf_done has trouble");
}

static int trouble_start(fb_worker *worker, void *state)
{
    (void)state;
    if (strcmp(place, "later") == 0 || strcmp(place, "first") == 0)
        fb_worker_timer(worker, LOOK, LOOK_MS);
    return meet_trouble("start");
}

/* A worker's loop begins to run behind its word to the master. */
static void trouble_timer(fb_worker *worker, void *state, uint32_t id)
{
    (void)state;
    if (id == END) {
        signal(SIGALRM, SIG_DFL);
        raise(SIGALRM);
    }
    if (!counted)
        dies = atomic_fetch_add(started, 1) == 0 || strcmp(place, "later") == 0;
    counted = true;
    if (atomic_load(started) < fb_worker_count(worker))
        fb_worker_timer(worker, LOOK, LOOK_MS);
    else if (dies)
        fb_worker_timer(worker, END, (uint64_t)atoi(kind));
}

static int trouble_opened(fb_conn *conn, void *state)
{
    (void)conn;
    (void)state;
    return meet_trouble("client");
}

static size_t trouble_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    fb_write(conn, in.p, in.n);
    fb_metric_add(conn, 0, 1);
    return in.n;
}

static const fb_directive directives[] = {
    { .name = TROUBLE "d", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = TROUBLE,
        .value = FB_VALUE_CUSTOM,
        .set = set_trouble,
        .args_least = 2,
        .args_most = 2 },
};

static const fb_metric metrics[] = { { "echoes", FB_COUNTER, 0 } };

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .opened = trouble_opened,
    .data = trouble_data,
};

static const fb_worker_ops worker_ops = { .size = sizeof(fb_worker_ops), .timer = trouble_timer };

FB_PROTOCOL(trouble) = {
    FB_PROTOCOL_HEADER,
    .name = TROUBLE,
    FB_PROTOCOL_DIRECTIVES(directives),
    FB_PROTOCOL_METRICS(metrics),
    .ops = &ops,
    .conf_done = trouble_done,
    .worker_start = trouble_start,
    .worker_ops = &worker_ops,
};

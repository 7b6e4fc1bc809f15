/* SPDX-License-Identifier: BSD-2-Clause */
/* A protocol that counts its connections in a map, over all workers, and in metrics. The reply to a
 * connect or to "?" is "N there", the reply to "j" is "job" after a job of a thread. Clients silent
 * for 5 s are closed. */
#include <forkbeard/forkbeard.h>

#include <inttypes.h>
#include <stdio.h>

#define SILENCE_MS 5000

enum { CLIENTS, VISITS };

struct conf {
    fb_map *map;
};

static const fb_bytes key = { (const uint8_t *)"there", 5 };

/* Adds to the number in the map, and returns the sum. */
static int64_t add(fb_conn *conn, int64_t by)
{
    const struct conf *conf = fb_conf_of(conn);
    int64_t sum = 0;

    fb_map_add(fb_worker_of(conn), conf->map, key, by, &sum);
    return sum;
}

static void say_number(fb_conn *conn, int64_t n)
{
    char text[40];

    fb_write(conn, text, (size_t)snprintf(text, sizeof(text), "%" PRId64 " there\n", n));
}

static int presence_opened(fb_conn *conn, void *state)
{
    (void)state;
    fb_metric_add(conn, CLIENTS, 1);
    fb_metric_add(conn, VISITS, 1);
    fb_set_timeout(conn, SILENCE_MS);
    say_number(conn, add(conn, 1));
    return 0;
}

static void run_job(void *job)
{
    (void)job;
}

static void job_done(fb_worker *worker, void *job)
{
    fb_conn *conn = fb_find(worker, *(fb_ref *)job);

    if (conn != NULL)
        fb_write(conn, "job\n", 4);
}

static size_t presence_data(fb_conn *conn, void *state, fb_bytes in)
{
    fb_ref ref = fb_ref_of(conn);

    (void)state;
    if (in.p[0] == 'j' && fb_run(fb_worker_of(conn), run_job, job_done, &ref, sizeof(ref)) == -1)
        fb_abort(conn);
    if (in.p[0] == '?')
        say_number(conn, add(conn, 0));
    return in.n;
}

static void presence_closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)state;
    (void)reason;
    fb_metric_add(conn, CLIENTS, -1);
    add(conn, -1);
}

static int presence_conf_done(fb_conf *conf, void *own, const void *parent)
{
    static const fb_map_options options = {
        .size = sizeof(options),
        .name = "presence",
        .version = 1,
        .capacity = 10,
        .key_max = 10,
        .value_max = sizeof(int64_t),
    };

    (void)parent;
    ((struct conf *)own)->map = fb_conf_map(conf, &options);
    return ((struct conf *)own)->map != NULL ? 0 : -1;
}

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .opened = presence_opened,
    .data = presence_data,
    .closed = presence_closed,
};

static const fb_directive directives[] = {
    { .name = "presence", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_metric metrics[] = {
    [CLIENTS] = { .name = "clients", .kind = FB_GAUGE },
    [VISITS] = { .name = "visits", .kind = FB_COUNTER },
};

FB_PROTOCOL(presence) = {
    FB_PROTOCOL_HEADER,
    .name = "presence",
    FB_PROTOCOL_DIRECTIVES(directives),
    FB_PROTOCOL_METRICS(metrics),
    .conf_state = sizeof(struct conf),
    .ops = &ops,
    .conf_done = presence_conf_done,
};

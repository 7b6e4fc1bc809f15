/* SPDX-License-Identifier: BSD-2-Clause */
/* A protocol with commands for the kit's tests. */
#include "kit/probe.h"

#include <ctype.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORD_MAX 200
#define DEADLINE_S 20

struct session {
    fb_conn *client;
    int n;
};

struct worker {
    struct session *ended;
};

struct job {
    fb_ref to;
    char text[WORD_MAX];
};

static const fb_frame_limit limit = { .most = WORD_MAX - 1 };

static void FB_SDK_PRINTF(2, 3) reply(fb_conn *conn, const char *format, ...)
{
    char text[WORD_MAX + 64];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fb_write(conn, text, strlen(text));
}

/* Jobs */

/* Until the process's first thread, the loop's, sleeps for want of work. */
static void await_loop(void)
{
    time_t deadline = time(NULL) + DEADLINE_S;
    char path[64], line[256], state = 0;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
    while (state != 'S' && time(NULL) < deadline) {
        FILE *file = fopen(path, "r");

        if (file != NULL && fgets(line, sizeof(line), file) != NULL && strrchr(line, ')') != NULL)
            state = strrchr(line, ')')[2];
        if (file != NULL)
            fclose(file);
        sched_yield();
    }
}

static void add_shout(void *arg)
{
    struct job *job = arg;

    await_loop();
    for (char *p = job->text; *p != '\0'; p++)
        *p = (char)toupper((unsigned char)*p);
}

static void release_shout(fb_worker *worker, void *arg)
{
    const struct job *job = arg;
    fb_conn *conn = fb_find(worker, job->to);

    if (conn != NULL)
        reply(conn, "%s\n", job->text);
}

static void start_job(fb_conn *conn, const char *text)
{
    struct job job = { .to = fb_ref_of(conn) };

    snprintf(job.text, sizeof(job.text), "%s", text);
    if (fb_run(fb_worker_of(conn), add_shout, release_shout, &job, sizeof(job)) == -1)
        reply(conn, "no thread\n");
}

/* Servers */

static int server_opened(fb_conn *server, void *state)
{
    struct session *session = state;

    fb_write(server, "hi\n", 3);
    reply(session->client, "connected\n");
    return 0;
}

static size_t server_data(fb_conn *server, void *state, fb_bytes in)
{
    struct session *session = state;

    (void)server;
    fb_write(session->client, in.p, in.n);
    return in.n;
}

static void server_closed(fb_conn *server, void *state, fb_reason reason)
{
    struct session *session = state;

    (void)server;
    reply(session->client, "closed %d\n", (int)reason);
}

static const fb_ops server_ops = {
    .size = sizeof(fb_ops),
    .opened = server_opened,
    .data = server_data,
    .closed = server_closed,
};

static void connect_to(fb_conn *conn, void *state, const char *address)
{
    const fb_target *target = fb_make_target(conn, address);

    if (target == NULL || fb_connect(conn, target, &server_ops, state) == NULL)
        reply(conn, "no connection\n");
}

/* Lines */

static void tell_random(fb_conn *conn)
{
    uint8_t bytes[2];

    fb_random(fb_worker_of(conn), bytes, sizeof(bytes));
    reply(conn, "%02x%02x\n", bytes[0], bytes[1]);
}

static void touch_connection(fb_conn *conn)
{
    const struct worker *worker = fb_worker_state(conn);

    worker->ended->n++;
    reply(conn, "touched\n");
}

static void handle_command(fb_conn *conn, void *state, const char *line)
{
    const char *argument = strchr(line, ' ');

    argument = argument != NULL ? argument + 1 : "";
    if (strcmp(line, "random") == 0)
        tell_random(conn);
    else if (strcmp(line, "time") == 0)
        reply(conn, "%" PRId64 "\n", fb_wall_ms(fb_worker_of(conn)));
    else if (strncmp(line, "job ", 4) == 0)
        start_job(conn, argument);
    else if (strncmp(line, "timer ", 6) == 0)
        fb_timer(conn, 1, strtoul(argument, NULL, 10));
    else if (strncmp(line, "connect ", 8) == 0)
        connect_to(conn, state, argument);
    else if (strncmp(line, "memory ", 7) == 0)
        reply(conn, fb_alloc(conn, strtoul(argument, NULL, 10)) != NULL ? "here\n" : "none\n");
    else if (strcmp(line, "touch") == 0)
        touch_connection(conn);
    else if (strcmp(line, "abort") == 0)
        fb_abort(conn);
    else if (strcmp(line, "close") == 0)
        fb_close(conn);
    else if (strcmp(line, "shutdown") == 0)
        fb_shutdown(conn);
}

static int probe_opened(fb_conn *conn, void *state)
{
    struct session *session = state;

    session->client = conn;
    return 0;
}

static size_t probe_data(fb_conn *conn, void *state, fb_bytes in)
{
    fb_bytes rest = in, frame;
    char line[WORD_MAX];

    while (fb_frame_until(conn, &rest, "\n", 1, &limit, &frame)) {
        memcpy(line, frame.p, frame.n);
        line[frame.n] = '\0';
        handle_command(conn, state, line);
    }
    return in.n - rest.n;
}

static void probe_timer(fb_conn *conn, void *state, uint32_t id)
{
    (void)state;
    (void)id;
    reply(conn, "tick\n");
}

static void probe_draining(fb_conn *conn, void *state, uint64_t deadline)
{
    (void)state;
    reply(conn, "draining %" PRIu64 "\n", deadline);
}

static void probe_closed(fb_conn *conn, void *state, fb_reason reason)
{
    struct worker *worker = fb_worker_state(conn);

    worker->ended = state;
    fb_conn_logf(conn, FB_LOG_DEBUG, "closed for %d", (int)reason);
}

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .opened = probe_opened,
    .data = probe_data,
    .timer = probe_timer,
    .draining = probe_draining,
    .closed = probe_closed,
};

static const fb_directive directives[] = {
    { .name = "probe", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(probe) = {
    FB_PROTOCOL_HEADER,
    .name = "probe",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct session),
    .worker_state = sizeof(struct worker),
    .ops = &ops,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* A module made to hang or to grow by a client, by letters. Other letters are echoed. */
#include <forkbeard/forkbeard.h>

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void hang_turn(void)
{
    for (;;)
        pause();
}

static void hang_at_release(void *arg)
{
    (void)arg;
    hang_turn();
}

/* Takes longer than a stall_threshold of a test, and not as long as a worker_watchdog. */
static void take_nap(void)
{
    nanosleep(&(struct timespec) { .tv_nsec = 60000000 }, NULL);
}

static void nap_at_release(void *arg)
{
    (void)arg;
    take_nap();
}

static void hang_as_job(void *job)
{
    (void)job;
    hang_turn();
}

static void do_job(void *job)
{
    (void)job;
}

static void hang_at_done(fb_worker *worker, void *job)
{
    (void)worker;
    (void)job;
    hang_turn();
}

struct session {
    bool hangs_at_end;
};

static void send_line(fb_conn *conn, const char *text)
{
    fb_write(conn, text, strlen(text));
}

static void grow(fb_conn *conn)
{
    static char memory[32 << 20];

    memset(memory, 'g', sizeof(memory));
    fb_write(conn, memory, 1);
}

static void handle_command(fb_conn *conn, struct session *session, uint8_t letter)
{
    switch (letter) {
    case 'd':
        hang_turn();
        break;
    case 's': /* somebody stops the worker there */
        raise(SIGSTOP);
        hang_turn();
        break;
    case 'g':
        grow(conn);
        break;
    case 'i':
        signal(SIGABRT, SIG_IGN);
        hang_turn();
        break;
    case 't':
        fb_timer(conn, 1, 1);
        break;
    case 'c':
        session->hangs_at_end = true;
        fb_close(conn);
        break;
    case 'r':
        fb_write_ref(conn, "r", 1, hang_at_release, NULL);
        break;
    case 'j':
        fb_run(fb_worker_of(conn), hang_as_job, hang_at_done, NULL, 0);
        send_line(conn, "j");
        break;
    case 'f':
        fb_run(fb_worker_of(conn), do_job, hang_at_done, NULL, 0);
        break;
    case 'l':
        fb_write_ref(conn, "l", 1, nap_at_release, NULL);
        break;
    case 'n': /* slow, but it gets on */
        take_nap();
        send_line(conn, "n");
        break;
    case 'm':
        send_line(conn, getenv("NOTIFY_SOCKET") != NULL ? "y" : "n");
        break;
    default:
        fb_write(conn, &letter, 1);
        break;
    }
}

static size_t stuck_data(fb_conn *conn, void *state, fb_bytes in)
{
    for (size_t i = 0; i < in.n; i++)
        handle_command(conn, state, in.p[i]);
    return in.n;
}

static void stuck_timer(fb_conn *conn, void *state, uint32_t id)
{
    (void)conn;
    (void)state;
    (void)id;
    hang_turn();
}

static void stuck_closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)conn;
    (void)reason;
    if (((struct session *)state)->hangs_at_end)
        hang_turn();
}

static const fb_directive directives[] = {
    { .name = "stuck", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .data = stuck_data,
    .timer = stuck_timer,
    .closed = stuck_closed,
};

FB_PROTOCOL(stuck) = {
    FB_PROTOCOL_HEADER,
    .name = "stuck",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct session),
    .ops = &ops,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers ignoring the order to end: the master kills late workers in time. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define ROGUE "load_module " MODULES_PATH "/rogue.so;\n"
#define SERVER "events {} stream { server { listen 127.0.0.1:$0; rogue; } }\n"
#define TIMEOUT "worker_shutdown_timeout 200ms; "
#define TIMEOUT_MS 200
#define LATE_DRAIN "exited on signal 9"
#define WHY ", killed: it had not ended 1 s after worker_shutdown_timeout"

/* Ways of a worker that is told to drain: as the client has asked, or "" for being stopped. */
static const struct {
    const char *letter, *where;
} ways[] = {
    { "", "" },
    { "j", " in a job of protocol \"rogue\"" },
    { "i", "" },
};

#define WAYS ((int)(sizeof(ways) / sizeof(ways[0])))

/* A daemon with a worker that does not drain, and the worker's session. */
static struct daemon *start_rogue(const char *directives, int way, pid_t *worker, int *client)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, ROGUE TIMEOUT "%s" SERVER, directives);
    daemon_start(daemon);
    daemon_expects(daemon, LATE_DRAIN);
    ck_assert_uint_eq(proc_children(daemon->pid, worker, 1), 1);
    *client = client_open(daemon->ports[0]);
    client_echo(*client, "?");
    if (*ways[way].letter != '\0')
        client_echo(*client, ways[way].letter);
    else
        proc_freeze(*worker);
    return daemon;
}

/* The worker was killed, not before its time, and the log says why. */
static void check_killed(struct daemon *daemon, int way, int64_t from)
{
    char line[256];

    ck_assert_int_ge(now_ms() - from, TIMEOUT_MS + 1000);
    snprintf(line, sizeof(line), "%s" WHY, ways[way].where);
    ck_assert_uint_eq(daemon_count_log(daemon, line), 1);
}

static const int quits[] = { SIGQUIT, SIGTERM };

START_TEST(graceful_end)
{
    int way = _i % WAYS, client;
    int64_t from;
    struct daemon *daemon;
    pid_t worker;

    daemon = start_rogue("sigterm_shutdown graceful; ", way, &worker, &client);
    from = now_ms();
    daemon_signal(daemon, quits[_i / WAYS]);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    check_killed(daemon, way, from);
    client_expect_gone(client);
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* A worker hanging in worker_stop has released all listeners, and still has a channel. */
START_TEST(a_worker_that_hangs_as_it_stops)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        ROGUE TIMEOUT "events {}\n"
                      "stream { rogue_stop hang; server { listen 127.0.0.1:$0; rogue; } }\n");
    daemon_start(daemon);
    daemon_expects(daemon, LATE_DRAIN);
    daemon_stop(daemon, SIGQUIT);
    daemon_wait_log(daemon, LATE_DRAIN " in callback \"worker_stop\" of protocol \"rogue\"" WHY);
    daemon_finish(daemon);
}
END_TEST

/* The process without a master counts for itself. */
START_TEST(a_job_of_a_single_process)
{
    struct daemon *daemon = daemon_create(1);
    int64_t from;
    int client;

    daemon_configure(daemon, ROGUE TIMEOUT "master_process off; " SERVER);
    daemon_start(daemon);
    daemon_expects(daemon, "1 jobs have not ended 1 s after worker_shutdown_timeout");
    client = client_open(daemon->ports[0]);
    client_echo(client, "j");
    from = now_ms();
    daemon_stop(daemon, SIGQUIT);
    ck_assert_int_ge(now_ms() - from, TIMEOUT_MS + 1000);
    daemon_wait_log(daemon, "jobs have not ended");
    client_expect_gone(client);
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* The daemon goes at once: the job is not waited for, and its module stays loaded until then. */
START_TEST(fast_end_with_a_job)
{
    struct daemon *daemon = daemon_start_new(1, ROGUE SERVER);
    int client = client_open(daemon->ports[0]);

    client_echo(client, "j");
    daemon_stop(daemon, SIGTERM);
    ck_assert_uint_eq(daemon_count_log(daemon, "exited with code 0"), 1);
    client_expect_gone(client);
    close(client);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, graceful_end, 0, WAYS + 1);
    tcase_add_test(tcase, a_worker_that_hangs_as_it_stops);
    tcase_add_test(tcase, a_job_of_a_single_process);
    tcase_add_test(tcase, fast_end_with_a_job);
}

TEST_MAIN("deadlines", add_tests)

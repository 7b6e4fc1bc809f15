/* SPDX-License-Identifier: BSD-2-Clause */
/* Generations of workers that do not become ready, or that drain for long. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LATE "was not ready within worker_start_timeout (2000 ms)"
#define HANGS_FOR(time)                                                                            \
    "load_module " MODULES_PATH "/hangs.so; worker_start_timeout " time ";\n"                      \
    "events {} stream { server { listen 127.0.0.1:$0; hangs; hangs_while $D/late; } "              \
    "server { listen unix:$D/socket; echo; } }\n"
#define HANGS HANGS_FOR("2s")

/* From now on no worker becomes ready, or each does. */
static void open_hanging(struct daemon *daemon, bool late)
{
    char path[128];

    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "late"));
    if (late)
        daemon_write(daemon, "late", "x");
    else
        ck_assert_int_eq(unlink(path), 0);
}

static unsigned count_generations(const char *text, const char *word)
{
    unsigned n = 0;

    for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
        n++;
    return n;
}

static const char *const variants[] = { "daemon off;", "daemon on;" };

START_TEST(a_late_worker_fails_the_start)
{
    struct daemon *daemon = daemon_create(1);

    open_hanging(daemon, true);
    daemon_configure(daemon, "worker_processes 3; " HANGS);
    daemon_expects(daemon, LATE);
    daemon_expects(daemon, "exited on signal 9");
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-g", variants[_i], NULL), 1);
    proc_reap_orphans();
    ck_assert_uint_eq(count_generations(daemon->err, "[emerg]"), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, LATE ", nothing is served"));
    ck_assert_int_eq(client_error(daemon->ports[0]), ECONNREFUSED);
    ck_assert(!daemon_has(daemon, "forkbeard.pid"));
    ck_assert(!daemon_has(daemon, "forkbeard.sock"));
    ck_assert(!daemon_has(daemon, "socket"));
    daemon_finish(daemon);
}
END_TEST

/* A reload that comes while its workers are ended does not begin it anew. */
START_TEST(a_failed_start_does_not_reload)
{
    struct daemon *daemon = daemon_create(1);

    open_hanging(daemon, true);
    daemon_configure(daemon, HANGS);
    daemon_expects(daemon, LATE);
    daemon_expects(daemon, "exited on signal 9");
    daemon_launch(daemon);
    daemon_wait_log(daemon, ", nothing is served");
    daemon_configure(daemon, "events {} stream { server { listen 127.0.0.1:$0; echo; } }");
    daemon_signal(daemon, SIGHUP);
    ck_assert_int_eq(daemon_wait(daemon), 1);
    ck_assert_uint_eq(daemon_count_log(daemon, "start worker process"), 1);
    ck_assert(!daemon_has(daemon, "forkbeard.pid"));
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_late_worker_fails_the_reload)
{
    struct daemon *daemon = daemon_create(1);
    pid_t old[2], now[4];
    unsigned descriptors;
    int client;

    daemon_configure(daemon, "worker_processes 2; " HANGS_FOR("60s"));
    daemon_start(daemon);
    ck_assert_uint_eq(proc_children(daemon->pid, old, 2), 2);
    descriptors = proc_descriptors(daemon->pid);
    client = client_open(daemon->ports[0]);
    client_echo(client, "before");

    daemon_expects(daemon, LATE);
    daemon_expects(daemon, "exited on signal 9");
    open_hanging(daemon, true);
    daemon_configure(daemon, "worker_processes 3; " HANGS);
    if (_i == 0) {
        daemon_signal(daemon, SIGHUP);
    } else {
        ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 1);
        ck_assert_ptr_nonnull(strstr(daemon->err, LATE));
    }
    daemon_wait_log(daemon, LATE ", the previous configuration stays in force");
    WAIT_FOR(daemon_count_log(daemon, "exited on signal 9") == 3);
    WAIT_FOR(proc_children(daemon->pid, now, 4) == 2);
    ck_assert_uint_eq(daemon_count_log(daemon, "[emerg]"), 1);
    ck_assert(proc_has(now, 2, old[0]) && proc_has(now, 2, old[1]));
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors);
    client_echo(client, "the same session");
    close(client);
    close(client_open(daemon->ports[0]));
    ck_assert(daemon_has(daemon, "socket"));

    open_hanging(daemon, false);
    daemon_configure(daemon, "worker_processes 3; " HANGS_FOR("60s"));
    ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
    WAIT_FOR(proc_child_n(daemon->pid) == 3);
    daemon_finish(daemon);
}
END_TEST

/* The replacement of a worker that was killed is late, over and over, until it need not be. */
START_TEST(a_late_replacement_is_replaced)
{
    struct daemon *daemon = daemon_create(1);
    pid_t workers[2];
    int client;

    daemon_configure(daemon, "worker_processes 2; " HANGS);
    daemon_start(daemon);
    daemon_expects(daemon, "exited on signal 9");
    daemon_expects(daemon, LATE);
    daemon_expects(daemon, "a worker process died at once (");
    ck_assert_uint_eq(proc_children(daemon->pid, workers, 2), 2);
    open_hanging(daemon, true);
    ck_assert_int_eq(kill(workers[0], SIGKILL), 0);
    daemon_wait_log(daemon, LATE ", it is killed");
    daemon_wait_log(daemon, "(1 in a row), the next starts in 100 ms");
    daemon_wait_log(daemon, LATE ", it is killed");
    daemon_wait_log(daemon, "(2 in a row), the next starts in 200 ms");
    client = client_open(daemon->ports[0]);
    client_echo(client, "the other one serves");
    close(client);
    open_hanging(daemon, false);
    WAIT_FOR(proc_child_n(daemon->pid) == 2);
    ck_assert_uint_eq(daemon_count_log(daemon, "[emerg]"), 0);
    daemon_finish(daemon);
}
END_TEST

/* Neither an end nor a later reload waits for workers that never become ready. */
START_TEST(a_hanging_start_delays_no_end)
{
    static const int signals[] = { SIGTERM, SIGQUIT };
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, HANGS_FOR("60s"));
    daemon_start(daemon);
    open_hanging(daemon, true);
    daemon_expects(daemon, "exited on signal 9");
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "reconfiguring");
    daemon_wait_log(daemon, "start worker process");
    daemon_stop(daemon, signals[_i]);
    open_hanging(daemon, false);
    daemon_finish(daemon);
}
END_TEST

#define GENERATIONS 3
#define WORKERS 2
#define WORKERS_MAX 32
#define RELOADS 10

static void check_bound(const struct daemon *daemon)
{
    ck_assert_uint_le(proc_child_n(daemon->pid), (GENERATIONS + 1) * WORKERS);
}

/* A session with none of these: they take who is waiting as they step back. */
static int open_elsewhere(const struct daemon *daemon, const pid_t *old, unsigned n)
{
    for (int64_t until = deadline_ms();;) {
        int client = client_open(daemon->ports[0]);

        ck_assert_int_lt(now_ms(), until);
        client_echo(client, "held open");
        if (!proc_has(old, n, proc_server_of(daemon->pid, client)))
            return client;
        close(client);
    }
}

/* Reloads, and looks all the while. */
static void reload_within_bound(struct daemon *daemon, unsigned number)
{
    int64_t until;

    daemon_signal(daemon, SIGHUP);
    until = deadline_ms();
    while (daemon_count_log(daemon, "start worker process") < (number + 1) * WORKERS) {
        ck_assert_int_lt(now_ms(), until);
        check_bound(daemon);
    }
    for (int i = 0; i < WORKERS; i++)
        daemon_wait_log(daemon, "gracefully shutting down");
    check_bound(daemon);
}

START_TEST(generations_are_bounded)
{
    struct daemon *daemon = daemon_create(1);
    pid_t old[WORKERS_MAX];
    unsigned old_n = 0;
    int sessions[RELOADS + 1];

    daemon_expects(daemon, "(max_generations)");
    daemon_configure(daemon, "worker_processes 2; max_generations 3; events {}"
                             "stream { server { listen 127.0.0.1:$0; echo; } }");
    daemon_start(daemon);
    sessions[0] = open_elsewhere(daemon, old, 0);
    for (unsigned i = 1; i <= RELOADS; i++) {
        old_n = proc_children(daemon->pid, old, WORKERS_MAX);
        reload_within_bound(daemon, i);
        sessions[i] = open_elsewhere(daemon, old, old_n);
    }
    /* a session a generation, and no more are left */
    for (unsigned i = 0; i <= RELOADS; i++) {
        if (i <= RELOADS - GENERATIONS)
            client_expect_gone(sessions[i]);
        else
            client_echo(sessions[i], "goes on");
        close(sessions[i]);
    }
    for (unsigned i = 1; i <= RELOADS + 1 - GENERATIONS; i++) {
        char line[128];

        snprintf(line, sizeof(line),
            "[alert] %d#0: more than 3 generations (max_generations): generation %u is closed, "
            "1 session ends\n",
            (int)daemon->pid, i);
        ck_assert_uint_eq(daemon_count_log(daemon, line), 1);
    }
    WAIT_FOR(proc_child_n(daemon->pid) == WORKERS);
    daemon_finish(daemon);
}
END_TEST

#define CLOSED "more than 1 generations (max_generations): generation %u is closed, "

/* The reply to the reload has it, unless nobody lost anything. */
START_TEST(closing_sessions_is_told)
{
    struct daemon *daemon = daemon_create(1);
    char line[128], told[160];
    int sessions[2];

    daemon_expects(daemon, "(max_generations)");
    daemon_configure(
        daemon, "max_generations 1; events {} stream { server { listen 127.0.0.1:$0; echo; } }");
    daemon_start(daemon);
    for (unsigned i = 1; i <= 3; i++) {
        unsigned n = i - 1;
        struct json_value reply;

        for (unsigned j = 0; j < n; j++) {
            sessions[j] = client_open(daemon->ports[0]);
            client_echo(sessions[j], "held open");
        }
        snprintf(line, sizeof(line), CLOSED "%u session%s", i, n, n == 1 ? " ends" : "s end");
        snprintf(told, sizeof(told), "forkbeard: [alert] %s\n", line);
        if (i == 2) {
            reply = control_ask(daemon, "reload");
            ck_assert(control_is_ok(reply));
            ck_assert_str_eq(control_text(control_message(reply, line), "level"), "alert");
        } else {
            ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
            ck_assert_str_eq(daemon->err, n > 0 ? told : "");
        }
        snprintf(told, sizeof(told), "[%s] %d#0: %s\n", n > 0 ? "alert" : "notice",
            (int)daemon->pid, line);
        ck_assert_uint_eq(daemon_count_log(daemon, told), 1);
        for (unsigned j = 0; j < n; j++) {
            client_expect_gone(sessions[j]);
            close(sessions[j]);
        }
    }
    daemon_finish(daemon);
}
END_TEST

/* Fails unless ps shows it as this, for whatever padding. */
static bool has_title(pid_t pid, const char *title)
{
    const char *text = proc_text(pid, "cmdline");
    size_t n = strlen(title);

    return strncmp(text, title, n) == 0 && strspn(text + n, " ") == strlen(text + n);
}

static struct json_value worker_at(struct json_value status, unsigned generation, unsigned i)
{
    return control_at(control_at(status, "generations", generation), "workers", i);
}

/* The log, ps and the status say who serves, who drains and who has ended. */
START_TEST(a_drain_is_told)
{
    struct daemon *daemon = daemon_create(1);
    pid_t old[2], drains;
    struct json_value status;
    char line[128];
    unsigned left;
    int session;

    daemon_configure(
        daemon, "worker_processes 2; events {} stream { server { listen 127.0.0.1:$0; echo; } }");
    daemon_start(daemon);
    snprintf(line, sizeof(line), "[notice] %d#0: generation 1 serves, worker processes: 2\n",
        (int)daemon->pid);
    ck_assert_uint_eq(daemon_count_log(daemon, line), 1);
    ck_assert_uint_eq(proc_children(daemon->pid, old, 2), 2);
    session = client_open(daemon->ports[0]);
    client_echo(session, "held open");
    drains = proc_server_of(daemon->pid, session);
    ck_assert(has_title(drains, "forkbeard: worker process"));
    daemon_configure(
        daemon, "worker_processes 1; events {} stream { server { listen 127.0.0.1:$0; echo; } }");
    ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
    snprintf(line, sizeof(line),
        "[notice] %d#0: generation 2 serves in place of generation 1, worker processes: 1\n",
        (int)daemon->pid);
    ck_assert_uint_eq(daemon_count_log(daemon, line), 1);
    WAIT_FOR(has_title(drains, "forkbeard: worker process is shutting down"));
    WAIT_FOR(proc_child_n(daemon->pid) == 2);
    status = control_ask(daemon, "status");
    left = control_number(worker_at(status, 0, 0), "restarts") == 0 &&
           strcmp(control_text(worker_at(status, 0, 0), "state"), "draining") != 0;
    ck_assert_str_eq(control_text(worker_at(status, 0, left), "state"), "draining");
    ck_assert_str_eq(control_text(worker_at(status, 0, 1 - left), "state"), "ended");
    ck_assert_int_eq(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "  draining         -     -  ended    "));
    daemon_signal(daemon, SIGQUIT);
    WAIT_FOR(strncmp(proc_text(daemon->pid, "cmdline"),
                 "forkbeard: master process is shutting down ", 43) == 0);
    close(session);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    daemon_finish(daemon);
}
END_TEST

/* With 1 the old workers end at once, with 0 they never have to. */
START_TEST(the_bound_can_be_one_or_none)
{
    struct daemon *daemon = daemon_create(1);
    int sessions[10];

    daemon_expects(daemon, "(max_generations)");
    daemon_configure(daemon,
        "max_generations %d; events {} stream { server { listen 127.0.0.1:$0; echo; } }", _i);
    daemon_start(daemon);
    for (int i = 0; i < 10; i++) {
        sessions[i] = client_open(daemon->ports[0]);
        client_echo(sessions[i], "held open");
        ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
        if (_i == 0) /* the old worker accepts no more */
            daemon_wait_log(daemon, "gracefully shutting down");
        if (_i == 1)
            client_expect_gone(sessions[i]);
        else
            WAIT_FOR(daemon_count_log(daemon, "gracefully shutting down") == (unsigned)i + 1);
    }
    WAIT_FOR(proc_child_n(daemon->pid) == (_i == 1 ? 1u : 11u));
    for (int i = 0; i < 10; i++) {
        if (_i == 0)
            client_echo(sessions[i], "goes on");
        close(sessions[i]);
    }
    ck_assert_uint_eq(daemon_count_log(daemon, "max_generations"), _i == 1 ? 10 : 0);
    WAIT_FOR(proc_child_n(daemon->pid) == 1);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, a_late_worker_fails_the_start, 0, 2);
    tcase_add_test(tcase, a_failed_start_does_not_reload);
    if (!is_wrapped()) { /* in which every worker is late */
        tcase_add_loop_test(tcase, a_late_worker_fails_the_reload, 0, 2);
        tcase_add_test(tcase, a_late_replacement_is_replaced);
    }
    tcase_add_loop_test(tcase, a_hanging_start_delays_no_end, 0, 2);
    tcase_add_test(tcase, generations_are_bounded);
    tcase_add_loop_test(tcase, the_bound_can_be_one_or_none, 0, 2);
    tcase_add_test(tcase, closing_sessions_is_told);
    if (!is_wrapped()) /* valgrind would have a title of its own */
        tcase_add_test(tcase, a_drain_is_told);
}

TEST_MAIN("generations", add_tests)

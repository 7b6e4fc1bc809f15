/* SPDX-License-Identifier: BSD-2-Clause */
/* Generations of workers never ready, or with a long drain. */
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

/* From now on no worker becomes ready, or every worker. */
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

/* Whether ps shows the title, with any padding. */
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

/* The log, ps and the status show serving, draining and ended workers. */
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

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, a_late_worker_fails_the_start, 0, 2);
    if (!is_wrapped()) { /* in which every worker is late */
    }
    if (!is_wrapped()) /* valgrind would have its own title */
        tcase_add_test(tcase, a_drain_is_told);
}

TEST_MAIN("generations", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Name services that hang: a worker is replaced all the same, the master does not wait, and a
 * reload in need of an answer fails. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/fault_plan.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MASTER, CHECK };

static struct fault_plan *plan;

static struct daemon *start_daemon(void)
{
    struct daemon *daemon = daemon_create(1);

    plan = fault_plan_share(daemon);
    daemon_configure(daemon,
        "events { debug_connection localhost; } stream { server { listen localhost:$0; echo; } }");
    daemon->before_exec = fault_plan_preload;
    daemon_start(daemon);
    daemon->before_exec = NULL;
    return daemon;
}

/* Lets every question of this process, or of all, wait for ever. */
static void hang_services(uint32_t process)
{
    memset(plan, 0, sizeof(*plan));
    snprintf(plan->call, sizeof(plan->call), "name service");
    plan->round = 1;
    plan->process = process;
    plan->nth = 1;
    plan->kind = FAULT_HANGS;
    atomic_store(&plan->armed, 1);
}

static void serve_client(const struct daemon *daemon)
{
    int client = client_open(daemon->ports[0]);

    client_echo(client, "served");
    close(client);
}

START_TEST(a_worker_asks_nobody)
{
    struct daemon *daemon = start_daemon();
    pid_t worker;

    hang_services(FAULT_ANY_PROCESS);
    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    daemon_expects(daemon, "exited on signal 9");
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    WAIT_FOR(proc_state(worker) == 0 && proc_child_n(daemon->pid) == 1);
    serve_client(daemon);
    ck_assert_uint_eq(atomic_load(&plan->hits), 0);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

START_TEST(the_master_asks_nobody)
{
    struct daemon *daemon = start_daemon();

    hang_services(MASTER);
    ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_uint_eq(atomic_load(&plan->hits), 0);
    serve_client(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* A signal ends the check here as its time limit does after a minute. */
START_TEST(a_reload_fails_for_want_of_an_answer)
{
    struct daemon *daemon = start_daemon();
    pid_t children[3];
    unsigned n;

    hang_services(CHECK);
    daemon_expects(daemon, "the name service for ");
    daemon_expects(daemon, "reload failed: ");
    daemon_signal(daemon, SIGHUP);
    WAIT_FOR(atomic_load(&plan->hits) == 1);
    serve_client(daemon);
    ck_assert_uint_eq((n = proc_children(daemon->pid, children, 3)), 2);
    ck_assert_int_eq(kill(children[0] > children[1] ? children[0] : children[1], SIGKILL), 0);
    daemon_wait_log(daemon, "was ended while it was asked: signal 9 (Killed)");
    daemon_wait_log(daemon, "reload failed: the previous configuration stays in force");
    serve_client(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, a_worker_asks_nobody);
    tcase_add_test(tcase, the_master_asks_nobody);
    tcase_add_test(tcase, a_reload_fails_for_want_of_an_answer);
}

TEST_MAIN("name_services", add_tests)

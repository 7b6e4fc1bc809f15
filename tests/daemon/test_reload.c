/* SPDX-License-Identifier: BSD-2-Clause */
/* A reload is a transaction: as a whole or without any change, and without the loss of a
 * connection. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/load_clients.h"
#include "daemon/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORKERS_MAX 16
#define ECHO "server { listen 127.0.0.1:$0; echo; }"

/* Things that must not change. */
struct snapshot {
    pid_t workers[WORKERS_MAX];
    unsigned worker_n, descriptors;
};

static struct snapshot list_resources(const struct daemon *daemon)
{
    struct snapshot s = { .worker_n = 0 };

    s.worker_n = proc_children(daemon->pid, s.workers, WORKERS_MAX);
    s.descriptors = proc_descriptors(daemon->pid);
    return s;
}

static void check_same(const struct daemon *daemon, const struct snapshot *before)
{
    struct snapshot now = list_resources(daemon);

    ck_assert_uint_eq(now.worker_n, before->worker_n);
    for (unsigned i = 0; i < now.worker_n; i++)
        ck_assert(proc_has(before->workers, before->worker_n, now.workers[i]));
    WAIT_FOR(proc_descriptors(daemon->pid) == before->descriptors);
}

/* Whether all workers are others than before. */
static bool is_replaced(const struct daemon *daemon, const struct snapshot *before, unsigned n)
{
    struct snapshot now = list_resources(daemon);

    for (unsigned i = 0; i < now.worker_n; i++)
        if (proc_has(before->workers, before->worker_n, now.workers[i]))
            return false;
    return now.worker_n == n;
}

/* Reloads, and waits until the old workers have gone and n new ones are there. */
static void reload_daemon(struct daemon *daemon, unsigned n)
{
    struct snapshot before = list_resources(daemon);

    daemon_signal(daemon, SIGHUP);
    WAIT_FOR(is_replaced(daemon, &before, n));
    /* the master reaps zombies after all further work */
    for (unsigned i = 0; i < before.worker_n; i++)
        WAIT_FOR(proc_state(before.workers[i]) == 0);
    daemon_wait_log(daemon, "gracefully shutting down");
}

/* Runs a reload that fails with the line `why` in the log and changes nothing. */
static void reload_in_vain(struct daemon *daemon, const char *why)
{
    struct snapshot before = list_resources(daemon);
    int client = client_open(daemon->ports[0]);

    client_echo(client, "before");
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, why);
    daemon_wait_log(daemon, "the previous configuration stays in force");
    WAIT_FOR(proc_child_n(daemon->pid) == before.worker_n); /* new ones may have begun */
    client_echo(client, "the same session");
    close(client);
    close(client_open(daemon->ports[0]));
    check_same(daemon, &before);
    ck_assert_int_eq(daemon_pid(daemon), daemon->pid);
}

START_TEST(new_configuration)
{
    struct daemon *daemon = daemon_create(2);
    int old;
    pid_t old_worker;

    daemon_configure(
        daemon, "events {} stream {" ECHO "server { listen 127.0.0.1:$1; return one; } }");
    daemon_start(daemon);
    old = client_open(daemon->ports[0]);
    client_echo(old, "begun");
    old_worker = proc_server_of(daemon->pid, old);
    ck_assert_str_eq(client_read_all(client_open(daemon->ports[1])), "one");

    daemon_configure(
        daemon, "events {} stream {" ECHO "server { listen 127.0.0.1:$1; return two; } }");
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "gracefully shutting down");
    /* the old worker accepts the waiting clients as it steps back */
    WAIT_FOR(strcmp(client_read_all(client_open(daemon->ports[1])), "two") == 0);
    client_echo(old, "goes on");
    ck_assert_int_eq(proc_server_of(daemon->pid, old), old_worker);
    ck_assert_uint_eq(proc_child_n(daemon->pid), 2);
    close(old);
    WAIT_FOR(proc_child_n(daemon->pid) == 1);
    WAIT_FOR(proc_state(old_worker) == 0);
    daemon_finish(daemon);
}
END_TEST

/* Mistakes, and their messages in the log. */
static const struct {
    const char *configuration, *line;
} mistakes[] = {
    { "events {} stream { server { listen 127.0.0.1:$0 reuseport; echo; }"
      " server { listen 127.0.0.1:$1; } }\n",
        "failed (98: Address already in use)" },
    { "events {} stream { server { listen 127.0.0.1:$1; } " ECHO " }\n",
        "failed (98: Address already in use)" },
    { "pid other.pid; events {} stream { " ECHO " server { listen 127.0.0.1:$1; } }\n",
        "failed (98: Address already in use)" },
    { "error_log more.log; error_log nowhere/error.log; events {} stream { " ECHO " }\n",
        "nowhere/error.log\" failed (2: No such file or directory)" },
    { "events {} stream { server { listen unix:$D/new; } " ECHO
      " server { listen 127.0.0.1:$1; } }\n",
        "failed (98: Address already in use)" },
};

START_TEST(mistake)
{
    struct daemon *daemon = daemon_create(2);

    daemon_configure(daemon, "worker_processes 2; events {} stream {" ECHO "}");
    daemon_start(daemon);
    ck_assert_int_eq(listen(daemon->reservations[1], 1), 0);
    daemon_expects(daemon, "");
    if (strstr(mistakes[_i].configuration, "more.log") != NULL)
        daemon_owns(daemon, "more.log");
    daemon_write(daemon, "forkbeard.conf", "%s%s%s", "error_log error.log notice;\n",
        strstr(mistakes[_i].configuration, "pid ") != NULL ? "" : "pid forkbeard.pid;\n",
        mistakes[_i].configuration);
    reload_in_vain(daemon, mistakes[_i].line);
    ck_assert(!daemon_has(daemon, "new"));
    ck_assert(!daemon_has(daemon, "other.pid.lock"));

    daemon_configure(daemon, "worker_processes 2; events {} stream {" ECHO "}");
    reload_daemon(daemon, 2);
    daemon_finish(daemon);
}
END_TEST

START_TEST(listeners_come_and_go)
{
    struct daemon *daemon = daemon_create(3);
    char path[128];
    int old;

    daemon_configure(daemon, "events {} stream { server { listen 127.0.0.1:$0;"
                             " listen 127.0.0.1:$1; listen unix:$D/one; echo; } }");
    daemon_start(daemon);
    old = client_open(daemon->ports[1]);
    client_echo(old, "begun");

    daemon_configure(daemon, "events {} stream { server { listen 127.0.0.1:$0;"
                             " listen 127.0.0.1:$2; listen unix:$D/two; echo; } }");
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "gracefully shutting down");
    WAIT_FOR(client_error(daemon->ports[1]) == ECONNREFUSED);
    ck_assert(!daemon_has(daemon, "one"));
    close(client_open(daemon->ports[0]));
    close(client_open(daemon->ports[2]));
    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "two"));
    close(client_open_unix(path));
    client_echo(old, "of a listener that is gone");
    close(old);
    WAIT_FOR(proc_child_n(daemon->pid) == 1);
    daemon_finish(daemon);
}
END_TEST

START_TEST(number_of_workers)
{
    static const char *const parameters[] = { "", "reuseport" };
    static const unsigned numbers[] = { 1, 4, 2, 5, 1, 3 };
    struct daemon *daemon = daemon_create(1);
    struct load_clients *load = malloc(sizeof(*load));

    for (int i = 0; i < 6; i++) {
        daemon_configure(daemon,
            "worker_processes %u; events {} stream { server { listen 127.0.0.1:$0 %s; echo; } }",
            numbers[i], parameters[_i]);
        if (i == 0) {
            daemon_start(daemon);
            load_clients_start(load, daemon->ports[0]);
        } else {
            reload_daemon(daemon, numbers[i]);
        }
        load_clients_wait(load, 50);
    }
    load_clients_stop_unharmed(load);
    free(load);
    daemon_finish(daemon);
}
END_TEST

/* Configurations, reached one from another. */
static const struct {
    const char *events, *parameter;
    unsigned workers;
} modes[] = {
    { "accept_mutex on;", "", 3 },
    { "accept_mutex off;", "", 3 },
    { "accept_mutex off;", "reuseport", 3 },
    { "accept_mutex on;", "", 2 },
    { "accept_mutex on; multi_accept on;", "reuseport", 4 },
    { "use poll; accept_mutex off;", "", 4 },
    { "accept_mutex off; multi_accept on;", "", 3 },
    { "use select;", "reuseport", 2 },
    { "use epoll;", "", 1 },
};

START_TEST(accept_mode)
{
    struct daemon *daemon = daemon_create(1);
    struct load_clients *load = malloc(sizeof(*load));

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        daemon_configure(daemon,
            "worker_processes %u; events { accept_mutex_delay 50ms; %s }"
            "stream { server { listen 127.0.0.1:$0 %s; echo; } }",
            modes[i].workers, modes[i].events, modes[i].parameter);
        if (i == 0) {
            daemon_start(daemon);
            load_clients_start(load, daemon->ports[0]);
        } else {
            reload_daemon(daemon, modes[i].workers);
        }
        load_clients_wait(load, 50);
    }
    load_clients_stop_unharmed(load);
    free(load);
    daemon_finish(daemon);
}
END_TEST

/* Descriptors of the only worker. */
static unsigned worker_descriptors(const struct daemon *daemon)
{
    struct snapshot s = list_resources(daemon);

    ck_assert_uint_eq(s.worker_n, 1);
    return proc_descriptors(s.workers[0]);
}

START_TEST(pid_file_moves)
{
    static const char *const names[] = { "new.pid", "$D/./forkbeard.pid", "$D/new.pid" };
    struct daemon *daemon = daemon_create(1);
    unsigned descriptors, of_worker;

    daemon_configure(daemon, "events {} stream {" ECHO "}");
    daemon_start(daemon);
    descriptors = proc_descriptors(daemon->pid);
    of_worker = worker_descriptors(daemon);
    daemon_write(daemon, "forkbeard.conf",
        "error_log error.log notice; pid %s; events {} stream {" ECHO "}", names[_i]);
    reload_daemon(daemon, 1);
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors);
    ck_assert_uint_eq(worker_descriptors(daemon), of_worker);
    ck_assert_int_eq(
        strtol(daemon_text(daemon, _i == 1 ? "forkbeard.pid" : "new.pid"), NULL, 10), daemon->pid);
    ck_assert_int_eq(daemon_has(daemon, "forkbeard.pid"), _i == 1);
    ck_assert_int_eq(daemon_has(daemon, "forkbeard.pid.lock"), _i == 1);
    daemon_expects(daemon, "another master");
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-g", "daemon off;", NULL), 75);
    ck_assert_ptr_nonnull(strstr(daemon->err, "another master process"));

    daemon_configure(daemon, "events {} stream {" ECHO "}");
    reload_daemon(daemon, 1);
    ck_assert_int_eq(daemon_pid(daemon), daemon->pid);
    ck_assert(!daemon_has(daemon, "new.pid"));
    ck_assert(!daemon_has(daemon, "new.pid.lock"));
    daemon_finish(daemon);
}
END_TEST

START_TEST(error_log_moves)
{
    struct daemon *daemon = daemon_create(1);
    unsigned descriptors;
    size_t length;

    daemon_configure(daemon, "events {} stream {" ECHO "}");
    daemon_start(daemon);
    descriptors = proc_descriptors(daemon->pid);
    daemon_write(daemon, "forkbeard.conf",
        "error_log new.log notice; pid forkbeard.pid; events {} stream {" ECHO "}");
    reload_daemon(daemon, 1); /* the old worker reports to the old master */
    daemon_owns(daemon, "new.log");
    length = strlen(daemon_text(daemon, "error.log"));
    daemon->log = "new.log";
    daemon->log_mark = 0;
    reload_daemon(daemon, 1);
    daemon_wait_log(daemon, "exited with code 0");
    ck_assert_uint_eq(strlen(daemon_text(daemon, "error.log")), length);
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors);
    daemon_finish(daemon);
}
END_TEST

START_TEST(storm)
{
    struct daemon *daemon = daemon_create(1);
    struct load_clients *load = malloc(sizeof(*load));
    struct snapshot before;

    daemon_configure(daemon, "worker_processes 2; events {} stream {" ECHO "}");
    daemon_start(daemon);
    load_clients_start(load, daemon->ports[0]);
    load_clients_wait(load, 20);
    before = list_resources(daemon);
    for (int i = 0; i < 20; i++) {
        daemon_signal(daemon, SIGHUP);
        load_clients_wait(load, 5);
    }
    WAIT_FOR(is_replaced(daemon, &before, 2));
    load_clients_stop(load);
    /* the last reload is over when all started workers but two have ended */
    WAIT_FOR(daemon_count_log(daemon, "start worker process") ==
                 daemon_count_log(daemon, "exited with code 0") + 2 &&
             proc_child_n(daemon->pid) == 2);
    WAIT_FOR(proc_descriptors(daemon->pid) == before.descriptors);
    ck_assert_uint_eq(load->refused, 0);
    ck_assert_uint_eq(load->lost_n, 0);
    ck_assert_uint_eq(load->wrong, 0);
    free(load);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, new_configuration);
    tcase_add_loop_test(tcase, mistake, 0, sizeof(mistakes) / sizeof(mistakes[0]));
    tcase_add_test(tcase, listeners_come_and_go);
    tcase_add_loop_test(tcase, number_of_workers, 0, 2);
    tcase_add_test(tcase, accept_mode);
    tcase_add_loop_test(tcase, pid_file_moves, 0, 3);
    tcase_add_test(tcase, error_log_moves);
    tcase_add_test(tcase, storm);
}

TEST_MAIN("reload", add_tests)

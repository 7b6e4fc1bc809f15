/* SPDX-License-Identifier: BSD-2-Clause */
/* Reloads whose new workers crash at once: the configuration before serves again, whoever has asked
 * is told, and sessions from before go on. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/rate_clients.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define IN_A_ROW 5 /* reloads */
#define WORKERS 2
#define MODULE "load_module " MODULES_PATH "/trouble.so;"
#define EVERY "every worker process of generation 2 has crashed within 1000 ms of its commit"
/* How the shared port is listened on. */
static const struct {
    const char *events, *listen;
} modes[] = {
    { "accept_mutex on;", "" },
    { "accept_mutex off;", "" },
    { "accept_mutex on;", "reuseport" },
};

/* Ports 0 and 1 stay, port 2 and a path are given up, port 3 and another path are new. */
static void configure_before(struct daemon *daemon, int mode)
{
    daemon_configure(daemon,
        "worker_processes %d; events { %s }"
        "stream { server { listen 127.0.0.1:$0 %s; echo; }"
        "server { listen 127.0.0.1:$1; listen 127.0.0.1:$2; listen unix:$D/before; echo; } }",
        WORKERS, modes[mode].events, modes[mode].listen);
}

/* The name of each of its endpoints and of its log is another. */
static void configure_after(struct daemon *daemon, int mode, const char *trouble)
{
    daemon_write(daemon, "forkbeard.conf",
        "error_log after.log notice; pid after.pid; control unix:after.sock;"
        "worker_processes %d; worker_start_timeout 5s;" MODULE "events { %s }"
        "stream { server { listen 127.0.0.1:$0 %s; troubled; trouble %s; }"
        "server { listen 127.0.0.1:$1; listen 127.0.0.1:$3; listen unix:$D/after; echo; } }",
        WORKERS, modes[mode].events, modes[mode].listen, trouble);
}

static struct daemon *begin_daemon(int mode)
{
    struct daemon *daemon = daemon_create(4);

    daemon_write(
        daemon, "client.conf", "pid forkbeard.pid; control unix:forkbeard.sock; events {}");
    daemon_owns(daemon, "after.log");
    configure_before(daemon, mode);
    daemon_start(daemon);
    daemon_expects(daemon, ""); /* crashes are what this is about */
    return daemon;
}

static int reload_daemon(struct daemon *daemon)
{
    return daemon_run(daemon, "-s", "reload", "-c", "client.conf", NULL);
}

static void serve_client(int client)
{
    client_echo(client, "served");
    close(client);
}

/* Checks that the configuration before the reload is in force. */
static void check_before(struct daemon *daemon)
{
    struct json_value status;

    for (int i = 0; i < 3; i++)
        serve_client(client_open(daemon->ports[i]));
    serve_client(client_open_unix(daemon_path(daemon, "before")));
    /* the kernel closes what was in a ring a moment after the process has been reaped */
    WAIT_FOR(client_error(daemon->ports[3]) == ECONNREFUSED);
    ck_assert(!daemon_has(daemon, "after") && !daemon_has(daemon, "after.pid"));
    ck_assert(!daemon_has(daemon, "after.sock"));
    ck_assert_int_eq(daemon_pid(daemon), daemon->pid);
    status = control_ask(daemon, "status");
    ck_assert_str_eq(control_text(status, "state"), "running");
    ck_assert(!control_is_ok(json_member(status, "reload")));
    ck_assert_ptr_nonnull(strstr(control_text(json_member(status, "reload"), "error"), EVERY));
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGUSR1);
    daemon_wait_log(daemon, "signal 10 (SIGUSR1)");
}

/* The reload fails, and a session from before the reload is still there. */
static void fail_reload(struct daemon *daemon, int mode, const char *trouble)
{
    int session = client_open(daemon->ports[0]);

    client_echo(session, "begun");
    configure_after(daemon, mode, trouble);
    ck_assert_int_eq(reload_daemon(daemon), 1);
    ck_assert_msg(strstr(daemon->err, EVERY) != NULL, "%s", daemon->err);
    ck_assert_ptr_nonnull(
        strstr(daemon->err, "reload failed: the previous configuration is in force again\n"));
    check_before(daemon);
    client_echo(session, "goes on");
    close(session);
}

/* Whether the text is in the log of the configuration that crashes, or in the one before, where no
 * worker of the new one has accepted. */
static bool has_line(struct daemon *daemon, const char *text)
{
    return daemon_count_log(daemon, text) > 0 ||
           (daemon_has(daemon, "after.log") &&
               strstr(daemon_text(daemon, "after.log"), text) != NULL);
}

/* The number of the generation that serves. */
static unsigned live_generation(struct daemon *daemon)
{
    struct json_value generation = { NULL, 0 }, status;
    const char *name = daemon_has(daemon, "after.sock") ? "after.sock" : "forkbeard.sock";
    int fd = client_open_unix(daemon_path(daemon, name));

    control_send(fd, "status");
    status = control_receive(fd);
    close(fd);
    while ((generation = json_next(json_member(status, "generations"), generation)).text != NULL)
        if (strcmp(control_text(generation, "state"), "live") == 0)
            return (unsigned)control_number(generation, "number");
    return 0;
}

/* How many of a process's children are stopped; `list` has room for three generations. */
static unsigned count_stopped(pid_t parent, pid_t list[3 * WORKERS])
{
    unsigned n = proc_children(parent, list, 3 * WORKERS), stopped = 0;

    for (unsigned i = 0; i < n; i++)
        stopped += proc_state(list[i]) == 'T';
    return stopped;
}

START_TEST(workers_that_all_crash_give_way)
{
    struct daemon *daemon = begin_daemon(_i);
    unsigned descriptors = proc_descriptors(daemon->pid);

    fail_reload(daemon, _i, "later 300");
    WAIT_FOR(proc_child_n(daemon->pid) == WORKERS);
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors);

    /* the mistake is corrected */
    configure_before(daemon, _i);
    ck_assert_int_eq(reload_daemon(daemon), 0);
    ck_assert(control_is_ok(json_member(control_ask(daemon, "status"), "reload")));
    WAIT_FOR(proc_child_n(daemon->pid) == WORKERS);
    WAIT_FOR(proc_descriptors(daemon->pid) == descriptors);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* Sessions that stay in old workers, and clients who come all the time: those alone are lost whom a
 * worker has had as it crashed. */
START_TEST(clients_of_others_are_served)
{
    struct daemon *daemon = begin_daemon(_i);
    struct rate_clients_options options = { daemon->ports[0], 200, 20, 50, 50 };
    struct rate_clients clients;

    rate_clients_start(&clients, &options);
    fail_reload(daemon, _i, "later 300");
    rate_clients_wait(&clients, 100);
    rate_clients_stop(&clients);
    rate_clients_check(&clients);
    ck_assert_uint_eq(atomic_load(&clients.long_ended), 0);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* A worker dies of its first client, and so does its replacement. */
START_TEST(crashes_of_clients_count)
{
    struct daemon *daemon = begin_daemon(_i);
    struct rate_clients_options options = { daemon->ports[0], 100, 0, 50, 1000 };
    struct rate_clients clients;

    rate_clients_start(&clients, &options);
    configure_after(daemon, _i, "client abort");
    ck_assert_int_eq(reload_daemon(daemon), 1);
    ck_assert_msg(strstr(daemon->err, EVERY) != NULL, "%s", daemon->err);
    rate_clients_wait(&clients, 20);
    rate_clients_stop(&clients);
    check_before(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

START_TEST(fails_again_and_again)
{
    struct daemon *daemon = begin_daemon(0);
    char says[96];

    for (unsigned i = 0; i < 3; i++) {
        configure_after(daemon, 0, "later 300");
        ck_assert_int_eq(reload_daemon(daemon), 1);
        snprintf(says, sizeof(says), "every worker process of generation %u has", 2 + 2 * i);
        ck_assert_msg(strstr(daemon->err, says) != NULL, "%s", daemon->err);
        WAIT_FOR(proc_child_n(daemon->pid) == WORKERS);
        serve_client(client_open(daemon->ports[2]));
    }
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* Forks a process that listens on the port as soon as the daemon does not. */
static pid_t take_port(const struct daemon *daemon, unsigned i)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((in_port_t)daemon->ports[i]),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid > 0) {
        close(fd);
        return pid;
    }
    alarm(60); /* it outlives no test that fails */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    while (bind(fd, (const struct sockaddr *)&address, sizeof(address)) == -1)
        pause_briefly();
    listen(fd, 1);
    for (;;)
        pause();
}

/* The new configuration stays, and nobody is told anything else. */
START_TEST(the_way_back_fails)
{
    struct daemon *daemon = begin_daemon(0);
    pid_t taker = take_port(daemon, 2);

    configure_after(daemon, 0, "later 300");
    ck_assert_int_eq(reload_daemon(daemon), 1);
    ck_assert_int_eq(kill(taker, SIGKILL), 0);
    ck_assert_int_eq(waitpid(taker, NULL, 0), taker);
    ck_assert_msg(strstr(daemon->err, EVERY) != NULL, "%s", daemon->err);
    ck_assert_ptr_nonnull(strstr(daemon->err, "bind() to 127.0.0.1"));
    ck_assert_msg(strstr(daemon->err, "reload failed, and the previous configuration could not be "
                                      "started again: the new one stays in force") != NULL,
        "%s", daemon->err);
    ck_assert(has_line(daemon, "could not be started again"));
    ck_assert_uint_eq(live_generation(daemon), 2);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* An old worker holds a port that was given up, and cannot release it for a while. */
START_TEST(the_way_back_waits_for_old_workers)
{
    struct daemon *daemon = begin_daemon(_i);
    struct json_value reply;
    int control;
    pid_t old;

    ck_assert_uint_eq(proc_children(daemon->pid, &old, 1), 1);
    proc_freeze(old);
    configure_after(daemon, _i, "later 400");
    control = control_open(daemon);
    control_send(control, "reload");
    WAIT_FOR(has_line(daemon, EVERY));
    ck_assert_int_eq(kill(old, SIGCONT), 0);
    reply = control_receive(control);
    ck_assert(!control_is_ok(reply));
    ck_assert_str_eq(control_text(reply, "in_force"), "previous");
    close(control);
    check_before(daemon);
    WAIT_FOR(proc_child_n(daemon->pid) == WORKERS);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* The new workers crash before one of them accepts: the old ones still accept then. */
START_TEST(none_of_the_new_workers_accepts)
{
    struct daemon *daemon = begin_daemon(_i);
    pid_t old[WORKERS], all[3 * WORKERS];
    int control = control_open(daemon);
    unsigned n;

    ck_assert_uint_eq(proc_children(daemon->pid, old, WORKERS), WORKERS);
    configure_after(daemon, _i, "start stop");
    control_send(control, "reload");
    WAIT_FOR(count_stopped(daemon->pid, all) == WORKERS);
    n = proc_children(daemon->pid, all, 3 * WORKERS);
    ck_assert_uint_eq(n, 2 * WORKERS);
    proc_freeze(daemon->pid);
    for (unsigned i = 0; i < n; i++) {
        if (proc_has(old, WORKERS, all[i]))
            continue;
        ck_assert_int_eq(kill(all[i], SIGCONT), 0);
        WAIT_FOR(proc_state(all[i]) == 'S'); /* ready, and waits for the master */
        proc_freeze(all[i]);
    }
    daemon_signal(daemon, SIGCONT);
    WAIT_FOR(!daemon_has(daemon, "before")); /* the commit */
    for (unsigned i = 0; i < n; i++)
        if (!proc_has(old, WORKERS, all[i])) {
            ck_assert_int_eq(kill(all[i], SIGABRT), 0);
            ck_assert_int_eq(kill(all[i], SIGCONT), 0);
        }
    ck_assert_str_eq(control_text(control_receive(control), "in_force"), "previous");
    close(control);
    check_before(daemon);
    WAIT_FOR(proc_child_n(daemon->pid) == WORKERS);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* The end of the daemon does not wait for the way back, which waits for an old worker. */
START_TEST(the_daemon_ends_before_the_way_back)
{
    struct daemon *daemon = begin_daemon(0);
    int control = control_open(daemon);
    pid_t old;

    ck_assert_uint_eq(proc_children(daemon->pid, &old, 1), 1);
    proc_freeze(old);
    configure_after(daemon, 0, "later 400");
    control_send(control, "reload");
    WAIT_FOR(has_line(daemon, EVERY));
    daemon_signal(daemon, _i == 0 ? SIGQUIT : SIGTERM);
    ck_assert(!control_is_ok(control_receive(control)));
    close(control);
    ck_assert_int_eq(kill(old, SIGCONT), 0);
    ck_assert_int_eq(proc_wait(daemon->pid), 0);
    daemon->pid = 0;
    daemon_finish(daemon);
}
END_TEST

/* A worker alone is replaced; the next reload waits, as the others may crash too. */
START_TEST(one_crash_is_not_all)
{
    struct daemon *daemon = begin_daemon(0);
    struct json_value reply;
    int control;

    configure_after(daemon, 0, "first 300");
    control = control_open(daemon);
    control_send(control, "reload");
    WAIT_FOR(has_line(daemon, "exited on signal 14"));
    daemon_signal(daemon, SIGHUP);
    reply = control_receive(control); /* the next reload is under way by then */
    ck_assert(control_is_ok(reply));
    ck_assert_int_eq(control_number(reply, "generation"), 2);
    close(control);
    WAIT_FOR(live_generation(daemon) == 3);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* Reloads behind one another, behind so many others; how long they take. */
static int64_t reload_in_a_row(struct daemon *daemon, unsigned before)
{
    int64_t begun = now_ms(), took_ms;
    int clients[IN_A_ROW];

    for (unsigned i = 0; i < IN_A_ROW; i++) {
        clients[i] = control_open(daemon);
        control_send(clients[i], "reload");
        WAIT_FOR(live_generation(daemon) == before + i + 2);
    }
    took_ms = now_ms() - begun;
    for (unsigned i = 0; i < IN_A_ROW; i++) {
        ck_assert(control_is_ok(control_receive(clients[i])));
        close(clients[i]);
    }
    return took_ms;
}

/* They do not take a second each, if the machine does not do much else, and each is replied to. */
START_TEST(a_reload_ends_the_probation_before)
{
    struct daemon *daemon = begin_daemon(0);
    unsigned tries = 0;

    while (reload_in_a_row(daemon, tries * IN_A_ROW) >= (IN_A_ROW - 1) * 1000 && !is_wrapped())
        ck_assert_uint_lt(++tries, 5);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* The end of the daemon is not kept waiting, and the new configuration counts as good. */
START_TEST(the_daemon_ends_meanwhile)
{
    struct daemon *daemon = begin_daemon(0);
    int control = control_open(daemon);

    control_send(control, "reload");
    WAIT_FOR(
        proc_child_n(daemon->pid) > 0 && daemon_count_log(daemon, "start worker process") >= 4);
    daemon_stop(daemon, SIGTERM);
    close(control);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, workers_that_all_crash_give_way, 0, 3);
    tcase_add_loop_test(tcase, clients_of_others_are_served, 0, 3);
    tcase_add_loop_test(tcase, crashes_of_clients_count, 0, 3);
    tcase_add_test(tcase, fails_again_and_again);
    tcase_add_test(tcase, the_way_back_fails);
    tcase_add_loop_test(tcase, the_way_back_waits_for_old_workers, 0, 3);
    tcase_add_loop_test(tcase, none_of_the_new_workers_accepts, 0, 3);
    tcase_add_loop_test(tcase, the_daemon_ends_before_the_way_back, 0, 2);
    tcase_add_test(tcase, one_crash_is_not_all);
    tcase_add_test(tcase, a_reload_ends_the_probation_before);
    tcase_add_test(tcase, the_daemon_ends_meanwhile);
}

TEST_MAIN("probation", add_tests)

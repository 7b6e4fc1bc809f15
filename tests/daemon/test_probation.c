/* SPDX-License-Identifier: BSD-2-Clause */
/* Reloads whose new workers crash at once: the configuration before serves again, whoever has asked
 * is told, and sessions from before go on. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/rate_clients.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define WORKERS 2
#define TRIES 10
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

/* Gives each endpoint and the log a new name; the workers crash on probation. */
static void configure_after(struct daemon *daemon, int mode)
{
    daemon_write(daemon, "forkbeard.conf",
        "error_log after.log notice; pid after.pid; control unix:after.sock;"
        "worker_processes %d; worker_start_timeout 5s;" MODULE "events { %s }"
        "stream { server { listen 127.0.0.1:$0 %s; troubled; trouble later 300; }"
        "server { listen 127.0.0.1:$1; listen 127.0.0.1:$3; listen unix:$D/after; echo; } }",
        WORKERS, modes[mode].events, modes[mode].listen);
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

/* The reload fails, and a session from before the reload is still there. False: the workers had no
 * processor for so long that they have not crashed on probation. */
static bool fail_reload(struct daemon *daemon, int mode)
{
    int session = client_open(daemon->ports[0]), code;

    client_echo(session, "begun");
    configure_after(daemon, mode);
    code = reload_daemon(daemon);
    if (strstr(daemon->err, EVERY) != NULL) {
        ck_assert_int_eq(code, 1);
        ck_assert_ptr_nonnull(
            strstr(daemon->err, "reload failed: the previous configuration is in force again\n"));
        check_before(daemon);
        client_echo(session, "goes on");
    }
    close(session);
    return strstr(daemon->err, EVERY) != NULL;
}

/* Begins with a daemon whose reload fails, while clients come (NULL: none). */
static struct daemon *begin_failed(int mode, struct rate_clients *clients, unsigned *descriptors)
{
    for (int tries = 0; tries < TRIES; tries++) {
        struct daemon *daemon = begin_daemon(mode);

        *descriptors = proc_descriptors(daemon->pid);
        if (clients != NULL)
            rate_clients_start(clients,
                &(struct rate_clients_options) { daemon->ports[0], 200, 20, 50, UINT_MAX });
        if (fail_reload(daemon, mode))
            return daemon;
        if (clients != NULL)
            rate_clients_stop(clients);
        daemon_stop(daemon, SIGTERM);
        daemon_finish(daemon);
    }
    ck_abort_msg("no reload was taken back");
}

START_TEST(workers_that_all_crash_give_way)
{
    unsigned descriptors;
    struct daemon *daemon = begin_failed(_i, NULL, &descriptors);

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

/* Sessions of crashed workers, by the master's count. */
static unsigned count_lost(struct daemon *daemon)
{
    static const char crash[] = " of protocol \"trouble\", ";
    unsigned n = 0;

    for (const char *p = daemon_text(daemon, "after.log"); (p = strstr(p, crash)) != NULL;)
        n += (unsigned)strtoul(p += strlen(crash), NULL, 10);
    return n;
}

/* Sessions in old workers, and clients coming all the time: a crashing worker loses only its own
 * sessions. */
START_TEST(clients_of_others_are_served)
{
    unsigned descriptors;
    struct rate_clients clients;
    struct daemon *daemon = begin_failed(_i, &clients, &descriptors);

    rate_clients_wait(&clients, 100);
    rate_clients_stop(&clients);
    rate_clients_check(&clients);
    ck_assert_uint_eq(atomic_load(&clients.refused), 0);
    ck_assert_uint_le(atomic_load(&clients.reset), count_lost(daemon));
    ck_assert_uint_eq(atomic_load(&clients.long_ended), 0);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, workers_that_all_crash_give_way, 0, 3);
    tcase_add_loop_test(tcase, clients_of_others_are_served, 0, 3);
}

TEST_MAIN("probation", add_tests)

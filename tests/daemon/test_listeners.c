/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners change while clients come: a replacement takes over the clients of its predecessor. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"
#include "daemon/proc.h"
#include "daemon/rate_clients.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Descriptors that are no listeners'. */
#define SPARE_DESCRIPTORS 200u
#define MANY 3000u
/* CPU time of a check of all these listeners: 50 ms; with a linear search for each, 20 s. */
#define CHECK_MS 5000

static void reload_daemon(struct daemon *daemon)
{
    struct json_value answer = control_ask(daemon, "reload");

    ck_assert_msg(control_is_ok(answer), "%.*s", (int)answer.n, answer.text);
}

/* Makes the next generation serve, and does not wait until it has proved itself. */
static void reload_quickly(struct daemon *daemon, unsigned generation)
{
    char serves[64];

    snprintf(serves, sizeof(serves), "generation %u serves", generation);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, serves);
}

/* Waits until so many workers in all have begun to drain: the next reload may bind what they hold,
 * and waits for a time only. */
static void wait_drains(struct daemon *daemon, unsigned n)
{
    WAIT_FOR(daemon_count_log(daemon, "gracefully shutting down") == n);
}

#define NARROW "listen 127.0.0.1:$0"
#define WIDE "listen $0"

/* Configurations, reloaded in turn while clients come to 127.0.0.1. */
static const struct {
    const char *listens;
    unsigned workers;
} steps[] = {
    { NARROW ";", 2 },
    { NARROW ";" WIDE ";", 2 }, /* a wildcard that includes the address */
    { NARROW ";", 3 },
    { WIDE ";", 2 }, /* instead of it */
    { NARROW ";", 1 },
    { WIDE " reuseport;", 2 },
    { WIDE " reuseport;" NARROW " bind reuseport;", 3 },
    { NARROW " reuseport;", 2 },
    { WIDE " backlog=64;" NARROW ";", 1 },
    { NARROW " bind;" WIDE ";", 2 },
    { WIDE " reuseport backlog=100;", 3 },
};

START_TEST(a_wildcard_comes_and_goes)
{
    struct daemon *daemon = daemon_create(1);
    struct rate_clients_options options = { daemon->ports[0], 300, 10, 50, 0 };
    struct rate_clients *clients = calloc(1, sizeof(*clients));
    const size_t n = sizeof(steps) / sizeof(steps[0]);
    unsigned replaced = 0;

    ck_assert_ptr_nonnull(clients);
    for (size_t i = 0; i < 2 * n + 1; i++) {
        daemon_configure(daemon,
            "worker_processes %u; events { accept_mutex %s; } stream { server { %s echo; } }",
            steps[i % n].workers, i % 2 == 0 ? "on" : "off", steps[i % n].listens);
        if (i == 0) {
            daemon_start(daemon);
            rate_clients_start(clients, &options);
        } else {
            reload_quickly(daemon, (unsigned)i + 1);
            replaced += steps[(i - 1) % n].workers;
            wait_drains(daemon, replaced);
        }
        rate_clients_wait(clients, 30);
        rate_clients_check(clients);
    }
    rate_clients_stop(clients);
    rate_clients_check(clients);
    free(clients);
    daemon_finish(daemon);
}
END_TEST

/* A session with the server of the address, not the wildcard's. */
static void check_narrow(const struct daemon *daemon)
{
    int client = client_open(daemon->ports[0]);

    client_echo(client, "of this address");
    close(client);
}

START_TEST(both_from_the_start)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        "events {} stream { server { " WIDE "; return wide; } server { " NARROW " bind; echo; } }");
    daemon_start(daemon);
    check_narrow(daemon);
    reload_daemon(daemon);
    check_narrow(daemon);
    daemon_finish(daemon);
}
END_TEST

START_TEST(both_in_a_single_process)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        "master_process off; events {} stream { server { " WIDE "; return wide; } "
        "server { " NARROW " bind; echo; } }");
    daemon_start(daemon);
    check_narrow(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* From the first start on there is only the wildcard's socket, and then only the other's. */
START_TEST(an_address_leaves_its_wildcard)
{
    struct daemon *daemon = daemon_create(1);
    struct rate_clients_options options = { daemon->ports[0], 300, 10, 50, 0 };
    struct rate_clients *clients = calloc(1, sizeof(*clients));

    ck_assert_ptr_nonnull(clients);
    daemon_configure(daemon,
        "events {} stream { server { " WIDE "; return wide; } server { " NARROW "; echo; } }");
    daemon_start(daemon);
    rate_clients_start(clients, &options);
    daemon_configure(daemon, "events {} stream { server { " NARROW "; echo; } }");
    reload_daemon(daemon);
    wait_drains(daemon, 1);
    rate_clients_wait(clients, 30);
    daemon_configure(daemon,
        "events {} stream { server { " WIDE "; return wide; } server { " NARROW "; echo; } }");
    reload_daemon(daemon);
    rate_clients_wait(clients, 30);
    rate_clients_stop(clients);
    rate_clients_check(clients);
    free(clients);
    daemon_finish(daemon);
}
END_TEST

/* Writes many servers, or fewer where descriptors are lacking, at addresses of their own. */
static void write_servers(struct daemon *daemon, unsigned *n)
{
    FILE *file = fopen(daemon_path(daemon, "servers.conf"), "we");
    struct rlimit limit;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    *n = is_wrapped() ? 100 : mechanisms_bounded(MANY + SPARE_DESCRIPTORS) - SPARE_DESCRIPTORS;
    if (limit.rlim_max < *n + SPARE_DESCRIPTORS)
        *n = (unsigned)limit.rlim_max - SPARE_DESCRIPTORS;
    for (unsigned i = 0; i < *n; i++)
        fprintf(file, "server { listen 127.77.%u.%u:%u; echo; }\n", i / 250, i % 250 + 1,
            (unsigned)daemon->ports[0]);
    ck_assert_int_eq(fclose(file), 0);
    daemon_owns(daemon, "servers.conf");
}

/* CPU time of the ended children. */
static int64_t children_ms(void)
{
    struct rusage used;

    ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &used), 0);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

static void check_configuration(struct daemon *daemon)
{
    int64_t before = children_ms();

    ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_int_lt(children_ms() - before, CHECK_MS);
}

START_TEST(many_are_checked_reloaded_and_closed)
{
    static const char *const without = "events {} stream { include servers.conf; }";
    static const char *const beside =
        "events {} stream { server { listen $0 bind; return wide; } include servers.conf; }";
    struct daemon *daemon = daemon_create(1);
    pid_t worker;
    unsigned n;

    write_servers(daemon, &n);
    daemon_configure(daemon, without);
    daemon_start(daemon);
    check_configuration(daemon);
    reload_daemon(daemon);
    daemon_configure(daemon, beside);
    reload_quickly(daemon, 3);
    check_configuration(daemon);
    reload_quickly(daemon, 4);
    ck_assert(control_is_ok(control_ask(daemon, "status")));
    WAIT_FOR(proc_child_n(daemon->pid) == 1);
    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    ck_assert_uint_ge(proc_descriptors(worker), n);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, a_wildcard_comes_and_goes);
    tcase_add_test(tcase, both_from_the_start);
    tcase_add_test(tcase, both_in_a_single_process);
    tcase_add_test(tcase, an_address_leaves_its_wildcard);
    tcase_add_test(tcase, many_are_checked_reloaded_and_closed);
}

TEST_MAIN("listeners", add_tests)

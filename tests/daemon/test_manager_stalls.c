/* SPDX-License-Identifier: BSD-2-Clause */
/* A service manager that does not read, reads late, never confirms, or cannot be one: the daemon
 * goes on, and required messages arrive, in order. */
#include "daemon/abreast.h"
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/proc.h"
#include "daemon/resources.h"
#include "daemon/service_manager.h"
#include "daemon/upgrade.h"

#include "base/compiler.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SERVER "server { listen 127.0.0.1:$0; echo; }"
#define CONF "worker_processes 2; events {} stream { " SERVER " }"
#define LONGER                                                                                     \
    "worker_processes 2; events {} stream { " SERVER " server { listen unix:$D/socket; echo; } }"
#define SINGLE "master_process off; events {} stream { " SERVER " }"

static void echo_once(struct daemon *daemon)
{
    int client = client_open(daemon->ports[0]);

    client_echo(client, "serves");
    close(client);
}

static int run(struct daemon *daemon, const char *verb)
{
    return daemon_run(daemon, "-s", verb, "-c", "forkbeard.conf", NULL);
}

/* The next message begins so. */
static void expect(struct service_manager *manager, const char *beginning)
{
    service_manager_next(manager);
    ck_assert_msg(strncmp(manager->message.text, beginning, strlen(beginning)) == 0,
        "\"%s\" instead of \"%s\"", manager->message.text, beginning);
}

static const char *const ways[] = { CONF, SINGLE };

/* Start, reload and stop go on, without a confirmation that cannot come. */
static void nothing_waits_for_it(unsigned i)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager = service_manager_create(daemon, 2000000, false);

    service_manager_fill(manager);
    daemon_configure(daemon, "%s", ways[i]);
    daemon_expects(daemon, "does not read: messages wait for it");
    daemon_expects(daemon, "the exit waits no longer");
    daemon_start(daemon);
    echo_once(daemon);
    daemon_wait_log(daemon, "does not read: messages wait for it");
    if (i == 0)
        ck_assert_int_eq(run(daemon, "reload"), 0);
    echo_once(daemon);
    daemon_stop(daemon, SIGTERM);
    service_manager_destroy(manager);
    daemon_finish(daemon);
}

/* Delayed messages come in order, without the messages made needless by a later one. */
static void it_reads_late(unsigned i)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager = service_manager_create(daemon, 0, false);

    (void)i;
    service_manager_fill(manager);
    daemon_configure(daemon, CONF);
    daemon_expects(daemon, "does not read: messages wait for it");
    daemon_start(daemon);
    ck_assert_int_eq(run(daemon, "reload"), 0);
    daemon_configure(daemon, LONGER);
    ck_assert_int_eq(run(daemon, "reload"), 0);
    daemon_wait_log(daemon, "does not read: messages wait for it");
    expect(manager, "FDSTORE=1");
    expect(manager, "STATUS=Serving: 2 workers, generation 3");
    expect(manager, "READY=1");
    expect(manager, "RELOADING=1");
    expect(manager, "FDSTORE=1");
    expect(manager, "READY=1");
    service_manager_wait_barrier(manager);
    ck_assert_uint_eq(manager->stored_n, 2);
    daemon_wait_log(daemon, "reads again");
    service_manager_stop(manager, SIGTERM);
    service_manager_expect(manager, "STOPPING=1");
    service_manager_destroy(manager);
    ck_assert(daemon_has(daemon, "socket"));
    daemon_owns(daemon, "socket");
    daemon_finish(daemon);
}

/* A listener dropped before the manager has read of it is not stored, nor held open. */
static void it_reads_after_a_listener_has_gone(unsigned i)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager = service_manager_create(daemon, 0, false);

    (void)i;
    service_manager_fill(manager);
    daemon_configure(daemon, LONGER);
    daemon_start(daemon);
    daemon_configure(daemon, CONF);
    ck_assert_int_eq(run(daemon, "reload"), 0);
    WAIT_FOR(!daemon_has(daemon, "socket"));
    service_manager_wait(manager, "RELOADING=1");
    service_manager_wait(manager, "READY=1");
    service_manager_wait_barrier(manager);
    ck_assert(service_manager_is_quiet(manager));
    ck_assert_uint_eq(manager->stored_n, 1);
    service_manager_destroy(manager);
    daemon_finish(daemon);
}

/* The new process sends only when the manager listens to it, at any time. */
static void an_upgrade_keeps_the_order(unsigned i)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager = service_manager_create(daemon, 0, false);
    pid_t old, new;
    char main_is[32];

    (void)i;
    daemon_configure(daemon, UPGRADE_ECHO(""));
    daemon_start(daemon);
    service_manager_wait(manager, "READY=1");
    service_manager_wait_barrier(manager);
    ck_assert_uint_eq(manager->stored_n, 2);
    service_manager_fill(manager);
    old = daemon->pid;
    new = upgrade_start(daemon);
    upgrade_echo_once(daemon);
    snprintf(main_is, sizeof(main_is), "MAINPID=%d", (int)new);
    service_manager_wait(manager, main_is);
    ck_assert_int_eq(manager->message.pid, old);
    ck_assert_uint_eq(manager->stored_n, 0);
    daemon->pid = new; /* the rest is its */
    service_manager_wait(manager, "READY=1");
    ck_assert_uint_eq(manager->stored_n, 2);
    daemon->pid = old;
    daemon_signal(daemon, SIGQUIT);
    while (proc_state(old) != 'Z')
        service_manager_is_quiet(manager);
    upgrade_wait_complete(daemon, new);
    service_manager_destroy(manager);
    ck_assert(daemon_has(daemon, "socket"));
    daemon_owns(daemon, "socket");
    daemon_finish(daemon);
}

/* A new process with an early end, unknown to the manager, is never named to it. */
static void an_upgrade_that_ends_unheard_is_not_told(unsigned i)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager = service_manager_create(daemon, 0, false);
    pid_t new;

    (void)i;
    daemon_configure(daemon, UPGRADE_ECHO(""));
    daemon_start(daemon);
    service_manager_wait(manager, "READY=1");
    service_manager_wait_barrier(manager);
    service_manager_fill(manager);
    new = upgrade_start(daemon);
    daemon_expects(daemon, "exited on signal 9");
    daemon_expects(daemon, "the master process has gone");
    ck_assert_int_eq(kill(new, SIGKILL), 0);
    upgrade_wait_rollback(daemon);
    do
        ck_assert(strncmp(service_manager_next(manager), "MAINPID=", 8) != 0);
    while (strcmp(manager->message.text, "READY=1") != 0);
    service_manager_wait_barrier(manager);
    ck_assert(service_manager_is_quiet(manager));
    ck_assert_uint_eq(manager->stored_n, 2);
    upgrade_echo_once(daemon);
    service_manager_destroy(manager);
    ck_assert(daemon_has(daemon, "socket"));
    daemon_owns(daemon, "socket");
    daemon_finish(daemon);
}

/* Stored sockets have arrived before the process known to the manager goes. */
static void a_process_stays_until_all_is_confirmed(unsigned i)
{
    struct daemon *daemon = daemon_create(1);
    struct service_manager *manager = service_manager_create(daemon, 0, false);
    pid_t pid;
    int session, control = -1;

    daemon_configure(daemon, CONF);
    daemon_start(daemon);
    service_manager_wait(manager, "READY=1");
    service_manager_wait_barrier(manager);
    pid = daemon->pid;
    session = client_open(daemon->ports[0]);
    client_echo(session, "stays");
    service_manager_fill(manager);
    daemon_configure(daemon, LONGER);
    ck_assert_int_eq(run(daemon, "reload"), 0);
    manager->keeps_barriers = true;
    daemon_mark_log(daemon);
    if (i == 0)
        daemon_signal(daemon, SIGINT);
    else
        control_send(control = control_open(daemon), "leave");
    daemon_wait_log(daemon, "exited with code 0");
    ck_assert_int_ne(proc_state(pid), 'Z');
    service_manager_wait(manager, "RELOADING=1");
    service_manager_wait(manager, "READY=1");
    service_manager_wait_barrier(manager);
    ck_assert_uint_eq(manager->stored_n, 2);
    ck_assert_int_ne(proc_state(pid), 'Z');
    service_manager_answer(manager);
    while (proc_state(pid) != 'Z')
        service_manager_is_quiet(manager);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    if (i != 0) {
        ck_assert(control_is_ok(control_receive(control)));
        close(control);
        client_echo(session, "still");
    }
    close(session);
    proc_reap_orphans();
    service_manager_destroy(manager);
    ck_assert(daemon_has(daemon, "socket"));
    daemon_owns(daemon, "socket");
    daemon_finish(daemon);
}

static char bad_name[256];

static void set_bad_name(void)
{
    setenv("NOTIFY_SOCKET", bad_name, 1);
}

/* A too long text is a repeated character. */
static const struct {
    const char *name, *expected;
} bad[] = {
    { "relative", "(neither an absolute path nor an abstract name)" },
    { "vsock:2:1234", "(neither an absolute path nor an abstract name)" },
    { "@", "(no name)" },
    { "/", "(no name)" },
    { "/xxx", "(too long)" },
    { "@xxx", "(too long)" },
    { "/nowhere/at/all", "cannot be reached (2: No such file or directory)" },
    { "@fb_nobody_listens_here", "cannot be reached (111: Connection refused)" },
    { "/dev/null", "cannot be reached (111: Connection refused)" },
};

static void a_bad_address_is_one_line(unsigned i)
{
    struct daemon *daemon = daemon_create(1);

    snprintf(bad_name, sizeof(bad_name), "%s", bad[i].name);
    if (strstr(bad[i].expected, "too long") != NULL)
        memset(bad_name + 1, 'x', sizeof(bad_name) - 2);
    daemon->before_exec = set_bad_name;
    daemon_expects(daemon, bad[i].expected);
    daemon_configure(daemon, CONF);
    daemon_start(daemon);
    echo_once(daemon);
    daemon_stop(daemon, SIGQUIT);
    ck_assert_ptr_nonnull(strstr(daemon_text(daemon, "daemon.err"), bad[i].expected));
    daemon->before_exec = NULL;
    daemon_finish(daemon);
}

/* Parts run abreast, because all mostly wait. */
static const struct {
    const char *name;
    void (*run)(unsigned i);
    unsigned i;
} parts[] = {
    { "nothing waits for it, a master process", nothing_waits_for_it, 0 },
    { "nothing waits for it, a single process", nothing_waits_for_it, 1 },
    { "it reads late", it_reads_late, 0 },
    { "it reads after a listener has gone", it_reads_after_a_listener_has_gone, 0 },
    { "an upgrade keeps the order", an_upgrade_keeps_the_order, 0 },
    { "an upgrade that ends unheard", an_upgrade_that_ends_unheard_is_not_told, 0 },
    { "a stop stays until all is confirmed", a_process_stays_until_all_is_confirmed, 0 },
    { "a leave stays until all is confirmed", a_process_stays_until_all_is_confirmed, 1 },
};

static void run_part(void *arg, unsigned i)
{
    (void)arg;
    abreast_note("%s", parts[i].name);
    parts[i].run(parts[i].i);
}

START_TEST(the_daemon_goes_on)
{
    abreast_run(countof(parts), countof(parts), run_part, NULL);
}
END_TEST

static void run_bad(void *arg, unsigned i)
{
    (void)arg;
    abreast_note("NOTIFY_SOCKET=%s", bad[i].name);
    a_bad_address_is_one_line(i);
}

START_TEST(an_address_may_be_bad)
{
    abreast_run(countof(bad), countof(bad), run_bad, NULL);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, the_daemon_goes_on);
    tcase_add_test(tcase, an_address_may_be_bad);
}

TEST_MAIN("manager_stalls", add_tests)

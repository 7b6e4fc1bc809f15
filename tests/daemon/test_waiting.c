/* SPDX-License-Identifier: BSD-2-Clause */
/* A command that waits says for what: to the client that asks for it, in the log and in the
 * status. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A worker does not get ready while the file "late" is there. */
#define LATE                                                                                       \
    "load_module " MODULES_PATH "/hangs.so; events {} "                                            \
    "stream { server { listen 127.0.0.1:$0; hangs; hangs_while $D/late; } }"
#define ECHO "events {} stream { server { listen 127.0.0.1:$0; echo; } }"

/* Opens a client that asks for a reload and for lines meanwhile. */
static int ask_with_progress(const struct daemon *daemon)
{
    int client = control_open(daemon);

    client_send(client, "{\"command\":\"reload\",\"progress\":true}\n");
    return client;
}

static void expect_waiting(int client, const char *why)
{
    struct json_value line = control_receive(client);

    ck_assert_ptr_null(json_member(line, "ok").text);
    ck_assert_msg(
        strstr(control_text(line, "waiting"), why) != NULL, "%s", control_text(line, "waiting"));
}

/* Returns the reply, behind further reasons to wait, which come on a slow machine. */
static struct json_value receive_reply(int client)
{
    struct json_value line;

    do
        line = control_receive(client);
    while (json_member(line, "ok").text == NULL);
    return line;
}

/* An upgrade that takes long says so to whoever has asked for it. */
START_TEST(an_upgrade_takes_long)
{
    struct daemon *daemon = daemon_start_new(1, LATE);
    int asked;
    pid_t new;

    daemon_write(daemon, "late", "x");
    asked = control_open(daemon);
    client_send(asked, "{\"command\":\"upgrade\",\"progress\":true}\n");
    expect_waiting(asked, "an upgrade is under way: the new binary, process ");
    ck_assert_int_eq(unlink(daemon_path(daemon, "late")), 0);
    ck_assert(control_is_ok(receive_reply(asked)));
    close(asked);
    WAIT_FOR((new = daemon_pid(daemon)) != daemon->pid && new > 0);
    upgrade_complete(daemon, new);
    daemon_finish(daemon);
}
END_TEST

/* An upgrade hangs: -s reload says so at once, and again when its time has passed. */
START_TEST(a_reload_waits_for_an_upgrade)
{
    static const char why[] = "an upgrade is under way: the new binary, process ";
    struct daemon *daemon = daemon_start_new(1, LATE);
    int asked, told, old_client;
    struct json_value pending;
    pid_t new;

    daemon_write(daemon, "late", "x");
    asked = control_open(daemon);
    control_send(asked, "upgrade");
    daemon_wait_log(daemon, "start new binary process");
    old_client = control_open(daemon);
    control_send(old_client, "reload");
    daemon_wait_log(daemon, "\"reload\" waits: an upgrade is under way: ");
    told = ask_with_progress(daemon);
    expect_waiting(told, why);
    ck_assert_int_eq(
        daemon_run(daemon, "-s", "reload", "--timeout", "2s", "-c", "forkbeard.conf", NULL), 3);
    ck_assert_msg(
        strstr(daemon->err, "[notice] \"reload\" waits: an upgrade is") != NULL, "%s", daemon->err);
    ck_assert_ptr_nonnull(strstr(daemon->err, "does not serve yet, at most "));
    ck_assert_ptr_nonnull(strstr(daemon->err, "within 2 s, because an upgrade is under way: "));
    ck_assert_int_eq(
        daemon_run(daemon, "-q", "-s", "reload", "--timeout", "2s", "-c", "forkbeard.conf", NULL),
        3);
    ck_assert_ptr_null(strstr(daemon->err, "[notice]"));
    ck_assert_ptr_nonnull(strstr(daemon->err, "because an upgrade is under way: "));

    pending = control_at(control_ask(daemon, "status"), "pending", 0);
    ck_assert_str_eq(control_text(pending, "command"), "reload");
    ck_assert_ptr_nonnull(strstr(control_text(pending, "waiting"), why));
    ck_assert_int_eq(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "reload waits: an upgrade is under way: "));

    ck_assert(client_is_quiet(old_client));
    ck_assert(client_is_quiet(told)); /* the reason is the same */
    ck_assert_int_eq(unlink(daemon_path(daemon, "late")), 0);
    ck_assert(control_is_ok(control_receive(asked)));
    ck_assert(control_is_ok(control_receive(old_client)));
    ck_assert(control_is_ok(receive_reply(told)));
    close(asked);
    close(old_client);
    close(told);
    WAIT_FOR((new = daemon_pid(daemon)) != daemon->pid && new > 0);
    upgrade_complete(daemon, new);
    ck_assert_uint_eq(control_count(control_ask(daemon, "status"), "pending"), 0);
    ck_assert_uint_eq(daemon_count_log(daemon, "\"reload\" waits: an upgrade"), 1);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* A reload hangs: the next one, and an upgrade, say so. */
START_TEST(commands_wait_for_a_reload)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);
    int first, second, upgrade;
    pid_t new = 0;

    daemon_configure(daemon, LATE);
    daemon_write(daemon, "late", "x");
    daemon_mark_log(daemon);
    first = ask_with_progress(daemon);
    daemon_wait_log(daemon, "start worker process");
    second = ask_with_progress(daemon);
    expect_waiting(second, "a reload is under way: the workers of generation 2 start, at most ");
    upgrade = control_open(daemon);
    client_send(upgrade, "{\"command\":\"upgrade\",\"progress\":true}\n");
    expect_waiting(upgrade, "a reload is under way: the workers of generation 2 start, at most ");
    ck_assert_uint_eq(control_count(control_ask(daemon, "status"), "pending"), 2);
    ck_assert(client_is_quiet(first)); /* the way is free */
    ck_assert_int_eq(unlink(daemon_path(daemon, "late")), 0);
    ck_assert(control_is_ok(control_receive(first)));
    ck_assert(control_is_ok(receive_reply(second)));
    WAIT_FOR((new = daemon_pid(daemon)) != daemon->pid && new > 0);
    close(first);
    close(second);
    close(upgrade);
    daemon_wait_log(daemon, "serves: the upgrade is complete when");
    upgrade_complete(daemon, new);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* A new generation that serves has to go on for a second, though no worker holds anything. */
START_TEST(an_upgrade_waits_for_the_probation)
{
    struct daemon *daemon = daemon_start_new(1, ECHO);
    int upgrade = control_open(daemon);
    struct json_value line;
    pid_t new = 0;

    daemon_configure(daemon, LATE);
    daemon_write(daemon, "late", "x");
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "start worker process");
    client_send(upgrade, "{\"command\":\"upgrade\",\"progress\":true}\n");
    expect_waiting(upgrade, "a reload is under way: the workers of generation 2 start, at most ");
    ck_assert_int_eq(unlink(daemon_path(daemon, "late")), 0);
    line = control_receive(upgrade);
    if (json_member(line, "ok").text == NULL) { /* a worker that is late to accept has proven it */
        ck_assert_ptr_nonnull(strstr(control_text(line, "waiting"),
            "a reload is under way: generation 2 serves, and has to go on without crashes for a "
            "moment, at most 1 s"));
        line = receive_reply(upgrade);
    }
    ck_assert(control_is_ok(line));
    close(upgrade);
    WAIT_FOR((new = daemon_pid(daemon)) != daemon->pid && new > 0);
    upgrade_complete(daemon, new);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* Workers that drain and are stopped hold listening sockets: five seconds at most. */
START_TEST(a_reload_waits_for_draining_workers)
{
    struct daemon *daemon = daemon_start_new(1, "worker_shutdown_timeout 60s; " ECHO);
    pid_t worker;
    int client;

    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    proc_freeze(worker);
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    client = ask_with_progress(daemon);
    expect_waiting(
        client, "draining workers of generation 1 still hold listening sockets, at most ");
    ck_assert_int_eq(kill(worker, SIGCONT), 0);
    ck_assert(control_is_ok(control_receive(client)));
    close(client);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, an_upgrade_takes_long);
    tcase_add_test(tcase, a_reload_waits_for_an_upgrade);
    tcase_add_test(tcase, commands_wait_for_a_reload);
    tcase_add_test(tcase, an_upgrade_waits_for_the_probation);
    tcase_add_test(tcase, a_reload_waits_for_draining_workers);
}

TEST_MAIN("waiting", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* A waiting command reports its reason: to the asking client, in the log and in the status. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/upgrade.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* A worker does not get ready while the file "late" is there. */
#define LATE                                                                                       \
    "load_module " MODULES_PATH "/hangs.so; events {} "                                            \
    "stream { server { listen 127.0.0.1:$0; hangs; hangs_while $D/late; } }"

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

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, a_reload_waits_for_an_upgrade);
}

TEST_MAIN("waiting", add_tests)

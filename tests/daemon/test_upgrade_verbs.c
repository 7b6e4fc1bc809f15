/* SPDX-License-Identifier: BSD-2-Clause */
/* forkbeard upgrade status, forward and back: the command waits until it has taken effect, and
 * prints the result. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A worker does not get ready while the file "late" is there. */
#define LATE                                                                                       \
    "load_module " MODULES_PATH "/hangs.so; events {} "                                            \
    "stream { server { listen 127.0.0.1:$0; hangs; hangs_while $D/late; } }"

static int verb(struct daemon *daemon, const char *word)
{
    return daemon_run(daemon, "upgrade", word, "-c", "forkbeard.conf", NULL);
}

/* Whether the output has the text, where %d is a pid. */
static void check_out(const char *out, const char *format, pid_t pid)
{
    char text[256];

    snprintf(text, sizeof(text), format, (int)pid);
    ck_assert_msg(strstr(out, text) != NULL, "no \"%s\" in:\n%s", text, out);
}

/* The ended process is no leftover child: the daemon is now the new process. */
static void old_has_ended(struct daemon *daemon, pid_t new)
{
    ck_assert_int_eq(proc_wait(daemon->pid), 0);
    daemon->pid = new;
}

static const char *const control[] = { "", "control off;" };

/* _i: with a control socket, and without. */
START_TEST(without_an_upgrade)
{
    static const char *const verbs[] = { "status", "forward", "back" };
    struct daemon *daemon = daemon_start_new(
        1, "%s events {} stream { server { listen 127.0.0.1:$0; echo; } }", control[_i]);

    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(verb(daemon, verbs[i]), 1);
        check_out(i == 0 ? daemon->out : daemon->err, "no upgrade is under way", 0);
        check_out(i == 0 ? daemon->out : daemon->err, "process %d", daemon->pid);
    }
    ck_assert_int_eq(daemon_pid(daemon), daemon->pid);
    daemon_stop(daemon, SIGTERM);
    ck_assert_int_eq(verb(daemon, "status"), 1);
    check_out(daemon->err, "no daemon runs", 0);
    ck_assert_int_eq(daemon_run(daemon, "upgrade", "-c", "forkbeard.conf", NULL), 1);
    check_out(daemon->err, "status|forward|back", 0);
    ck_assert_int_eq(daemon_run(daemon, "upgrade", "sideways", "-c", "forkbeard.conf", NULL), 1);
    daemon_finish(daemon);
}
END_TEST

START_TEST(status_tells_what_to_type)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO(""));
    pid_t new = upgrade_start(daemon);

    /* for a moment neither is the main process: the first has announced the change, and the second
     * has not heard it */
    WAIT_FOR(verb(daemon, "status") == 0 && strstr(daemon->out, ", main process\n") != NULL);
    check_out(daemon->out, "new binary: forkbeard ", 0);
    check_out(daemon->out, ", master process %d, running", new);
    check_out(daemon->out, "old binary: forkbeard ", 0);
    check_out(daemon->out, ", master process %d, running", daemon->pid);
    check_out(daemon->out, "2 workers", 0);
    check_out(daemon->out, "forkbeard upgrade forward", 0);
    check_out(daemon->out, "forkbeard upgrade back", 0);
    ck_assert_int_eq(
        daemon_run(daemon, "upgrade", "status", "--json", "-c", "forkbeard.conf", NULL), 0);
    check_out(daemon->out, "\"pid\":%d", new);
    check_out(strchr(daemon->out, '\n'), "\"pid\":%d", daemon->pid);
    ck_assert_int_eq(
        daemon_run(daemon, "upgrade", "status", "--control", "forkbeard.sock", NULL), 0);
    check_out(daemon->out, ", master process %d, running", daemon->pid);
    upgrade_complete(daemon, new);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* _i: 0 with a control socket, 1 without. */
START_TEST(forward)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO("%s"), control[_i]);
    pid_t new = upgrade_start(daemon), old = daemon->pid;

    ck_assert_int_eq(verb(daemon, "forward"), 0);
    check_out(daemon->err, "process %d serves alone", new);
    check_out(daemon->err, "process %d, has ended", old);
    old_has_ended(daemon, new);
    upgrade_echo_once(daemon);
    ck_assert_int_eq(verb(daemon, "forward"), 1);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* _i: with a control socket, and without. */
START_TEST(while_one_shuts_down)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO("%s"), control[_i]);
    int session = client_open(daemon->ports[0]);
    pid_t pid = daemon->pid;

    client_echo(session, "begun");
    ck_assert_int_eq(daemon_run(daemon, "-s", "quit", "-c", "forkbeard.conf", NULL), 0);
    WAIT_FOR(!daemon_has(daemon, "forkbeard.pid"));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(verb(daemon, i == 0 ? "status" : i == 1 ? "forward" : "back"), 1);
        check_out(i == 0 ? daemon->out : daemon->err,
            "no upgrade is under way: process %d is shutting down", pid);
    }
    close(session);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_int_eq(verb(daemon, "status"), 1);
    check_out(daemon->err, "no daemon runs", 0);
    daemon_finish(daemon);
}
END_TEST

/* A session of the old one goes on; a second upgrade is refused, and says why. */
START_TEST(forward_with_a_session)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO(""));
    int session = client_open(daemon->ports[0]);
    pid_t new, old = daemon->pid;

    client_echo(session, "begun");
    new = upgrade_start(daemon);
    for (int i = 0; i < 2; i++) { /* the second time it is done already */
        ck_assert_int_eq(verb(daemon, "forward"), 0);
        check_out(daemon->err, "process %d serves alone", new);
        check_out(daemon->err, "process %d, still has 1 session", old);
    }
    ck_assert_int_eq(verb(daemon, "status"), 0);
    check_out(daemon->out, "process %d, quitting", old);
    ck_assert_int_eq(verb(daemon, "back"), 1);
    check_out(daemon->err, "process %d, ends already", old);
    daemon_expects(daemon, "upgrade refused");
    ck_assert_int_eq(daemon_run(daemon, "-s", "upgrade", "-c", "forkbeard.conf", NULL), 1);
    check_out(daemon->err, "process %d, still lets its sessions end", old);
    client_echo(session, "goes on");
    close(session);
    old_has_ended(daemon, new);
    WAIT_FOR(verb(daemon, "status") == 1);
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* _i: 0 with a control socket, 1 without. */
START_TEST(back)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO("%s"), control[_i]);
    pid_t new = upgrade_start(daemon);

    ck_assert_int_eq(verb(daemon, "back"), 0);
    check_out(daemon->err, "process %d serves alone again", daemon->pid);
    check_out(daemon->err, "process %d, has ended", new);
    ck_assert_int_eq(daemon_pid(daemon), daemon->pid);
    ck_assert(!daemon_has(daemon, "forkbeard.pid.oldbin"));
    upgrade_echo_once(daemon);
    ck_assert_int_eq(verb(daemon, "back"), 1);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* The new master's session keeps the names from moving back, and the log tells it. */
START_TEST(back_with_a_session)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO(""));
    pid_t new = upgrade_start(daemon);
    int session;

    daemon_signal(daemon, SIGWINCH); /* the new one has the session */
    WAIT_FOR(proc_child_n(daemon->pid) == 1);
    session = client_open(daemon->ports[0]);
    client_echo(session, "begun");
    ck_assert_int_eq(
        daemon_run(daemon, "upgrade", "back", "--timeout", "3s", "-c", "forkbeard.conf", NULL), 3);
    check_out(daemon->err, "process %d, serves alone", daemon->pid);
    check_out(daemon->err, "process %d, still has 1 session", new);
    for (int i = 0; i < 4; i++)
        upgrade_echo_once(daemon); /* by workers started again by the old master */
    client_echo(session, "goes on");
    close(session);
    upgrade_wait_rollback(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* A verb does not wait for gone clients. */
START_TEST(both_end_meanwhile)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO("%s"), control[_i]);
    pid_t new = upgrade_start(daemon), asks;
    int session;

    daemon_signal(daemon, SIGWINCH); /* the new one has the session */
    WAIT_FOR(proc_child_n(daemon->pid) == 1);
    session = client_open(daemon->ports[0]);
    client_echo(session, "begun");
    asks = fork();
    if (asks == 0) /* 1 is what an assertion exits with, too */
        _exit(verb(daemon, "back") == 1 ? EXIT_SUCCESS : 2);
    ck_assert_int_gt(asks, 0);
    WAIT_FOR(proc_child_n(new) == 1);
    daemon_signal(daemon, SIGINT);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    ck_assert_int_eq(kill(new, SIGINT), 0);
    ck_assert_int_eq(proc_wait(new), 0); /* an orphan, seemingly alive until then */
    ck_assert_int_eq(proc_wait(asks), EXIT_SUCCESS);
    close(session);
    proc_reap_orphans();
    daemon_finish(daemon);
}
END_TEST

/* The new one does not serve yet. */
START_TEST(back_before_it_serves)
{
    struct daemon *daemon = daemon_start_new(1, LATE);
    int asked;

    daemon_write(daemon, "late", "x");
    asked = control_open(daemon);
    control_send(asked, "upgrade");
    daemon_wait_log(daemon, "start new binary process");
    WAIT_FOR(proc_child_n(daemon->pid) == 2);
    ck_assert_int_eq(verb(daemon, "status"), 0);
    check_out(daemon->out, "does not serve yet", 0);
    ck_assert_int_eq(verb(daemon, "forward"), 1);
    check_out(daemon->err, "does not serve yet", 0);
    daemon_expects(daemon, "upgrade refused: ");
    ck_assert_int_eq(daemon_run(daemon, "-s", "upgrade", "-c", "forkbeard.conf", NULL), 1);
    check_out(daemon->err, "does not serve yet", 0);
    check_out(daemon->err, "forkbeard upgrade back", 0);

    daemon_expects(daemon, "exited on signal 9"); /* the worker that hangs */
    ck_assert_int_eq(verb(daemon, "back"), 0);
    check_out(daemon->err, "process %d serves alone again", daemon->pid);
    ck_assert(!control_is_ok(control_receive(asked)));
    close(asked);
    ck_assert_int_eq(unlink(daemon_path(daemon, "late")), 0);
    daemon_stop(daemon, SIGTERM);
    proc_reap_orphans();
    daemon_finish(daemon);
}
END_TEST

/* A master is stopped: the verb names the silent master. */
START_TEST(a_master_that_is_stopped)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO(""));
    pid_t new = upgrade_start(daemon);

    proc_freeze(daemon->pid);
    ck_assert_int_eq(daemon_run(daemon, "upgrade", "forward", "--timeout", "300ms", "-c",
                         "forkbeard.conf", NULL),
        3);
    check_out(daemon->err, "did not reply", 0);
    ck_assert_int_eq(kill(daemon->pid, SIGCONT), 0);
    upgrade_complete(daemon, new);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* -s upgrade again, while both serve. */
START_TEST(a_second_upgrade_is_told_what_to_do)
{
    struct daemon *daemon = daemon_start_new(1, UPGRADE_ECHO(""));
    pid_t new = upgrade_start(daemon);

    daemon_expects(daemon, "upgrade refused");
    ck_assert_int_eq(daemon_run(daemon, "-s", "upgrade", "-c", "forkbeard.conf", NULL), 1);
    check_out(daemon->err, "process %d", new);
    check_out(daemon->err, "process %d", daemon->pid);
    check_out(daemon->err, "forkbeard upgrade forward", 0);
    check_out(daemon->err, "forkbeard upgrade back", 0);
    ck_assert_int_eq(verb(daemon, "back"), 0);
    ck_assert_int_eq(daemon_run(daemon, "-s", "upgrade", "-c", "forkbeard.conf", NULL), 0);
    new = daemon_pid(daemon);
    ck_assert_int_eq(verb(daemon, "forward"), 0);
    old_has_ended(daemon, new);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, without_an_upgrade, 0, 2);
    tcase_add_test(tcase, status_tells_what_to_type);
    tcase_add_loop_test(tcase, forward, 0, 2);
    tcase_add_loop_test(tcase, while_one_shuts_down, 0, 2);
    tcase_add_test(tcase, forward_with_a_session);
    tcase_add_loop_test(tcase, back, 0, 2);
    tcase_add_test(tcase, back_with_a_session);
    tcase_add_loop_test(tcase, both_end_meanwhile, 0, 2);
    tcase_add_test(tcase, back_before_it_serves);
    tcase_add_test(tcase, a_master_that_is_stopped);
    tcase_add_test(tcase, a_second_upgrade_is_told_what_to_do);
}

TEST_MAIN("upgrade_verbs", add_tests)

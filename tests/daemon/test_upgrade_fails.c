/* SPDX-License-Identifier: BSD-2-Clause */
/* Upgrades that fail or are refused, and the replies. */
#include "base/compiler.h"
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The binary under test, at a path where it can be replaced. */
static void copy_binary(struct daemon *daemon, const char *name)
{
    char command[512];
    const char *binary = getenv("FORKBEARD");

    snprintf(command, sizeof(command), "cp %s %s", binary != NULL ? binary : DAEMON_PATH,
        daemon_path(daemon, name));
    ck_assert_int_eq(system(command), 0);
    daemon_owns(daemon, name);
}

static struct daemon *start_copy(const char *configuration)
{
    struct daemon *daemon = daemon_create(2);

    copy_binary(daemon, "binary");
    daemon_configure(daemon, "%s", configuration);
    ck_assert_int_eq(setenv("FORKBEARD", daemon_path(daemon, "binary"), 1), 0);
    daemon_start(daemon);
    return daemon;
}

static void replace_by_script(struct daemon *daemon, const char *script)
{
    char path[256];

    daemon_write(daemon, "script", "#!/bin/sh\n%s\n", script);
    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "script"));
    ck_assert_int_eq(chmod(path, 0755), 0);
    ck_assert_int_eq(rename(path, daemon_path(daemon, "binary")), 0);
}

/* The file at the path is executed, whatever the state of the running file. */
START_TEST(a_replaced_binary)
{
    struct daemon *daemon = start_copy(UPGRADE_ECHO(""));
    char path[256];

    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "next"));
    unsetenv("FORKBEARD");
    copy_binary(daemon, "next");
    ck_assert_int_eq(rename(path, daemon_path(daemon, "binary")), 0);
    ck_assert_ptr_nonnull(strstr(proc_link(daemon->pid, "exe"), "(deleted)"));
    upgrade_complete(daemon, upgrade_start(daemon));
    ck_assert_str_eq(proc_link(daemon->pid, "exe"), daemon_path(daemon, "binary"));
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

static const struct {
    const char *script, *line; /* NULL: there is no file */
} broken[] = {
    { NULL, "/binary\" failed (2: No such file or directory)" },
    { "exit 3", "exited with code 3 and has told no reason, see what \"" },
};

/* The old process goes on, and a later try succeeds. */
START_TEST(a_broken_binary)
{
    struct daemon *daemon = start_copy(UPGRADE_ECHO("worker_start_timeout 2s;"));
    int client = client_open(daemon->ports[0]);
    char path[256];

    client_echo(client, "begun");
    if (broken[_i].script == NULL)
        ck_assert_int_eq(unlink(daemon_path(daemon, "binary")), 0);
    else
        replace_by_script(daemon, broken[_i].script);
    daemon_signal(daemon, SIGUSR2);
    daemon_wait_log(daemon, "upgrade failed, process ");
    daemon_wait_log(daemon, broken[_i].line);
    WAIT_FOR(daemon_pid(daemon) == daemon->pid);
    ck_assert(!daemon_has(daemon, "forkbeard.pid.oldbin"));
    ck_assert(!daemon_has(daemon, "forkbeard.sock.oldbin"));
    ck_assert_uint_eq(daemon_count_log(daemon, "[error]"), 1);
    ck_assert_uint_eq(proc_child_n(daemon->pid), 2);
    upgrade_echo_once(daemon);
    client_echo(client, "goes on");
    close(client);

    unsetenv("FORKBEARD");
    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "next"));
    copy_binary(daemon, "next");
    ck_assert_int_eq(rename(path, daemon_path(daemon, "binary")), 0);
    daemon_configure(daemon, UPGRADE_ECHO(""));
    upgrade_complete(daemon, upgrade_start(daemon));
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* The kernel's least room for arguments and environment, which the stack's limit bounds. */
#define LEAST_STACK (256u << 10)

static void fill_environment(void)
{
    char *text = calloc(1, 100001);

    ck_assert_ptr_nonnull(text);
    memset(text, 'x', 100000);
    setenv("PADDING", text, 1);
    setenv("MORE_PADDING", text, 1);
    free(text);
}

/* A list too long for the environment has a log line, and nothing is lost. */
START_TEST(a_list_too_long)
{
    struct daemon *daemon = daemon_create(2);
    struct rlimit limit;

    daemon_configure(daemon, UPGRADE_ECHO(""));
    daemon->before_exec = fill_environment;
    daemon_expects(daemon, "upgrade failed, process ");
    daemon_start(daemon);
    ck_assert_int_eq(prlimit(daemon->pid, RLIMIT_STACK, NULL, &limit), 0);
    limit.rlim_cur = LEAST_STACK;
    ck_assert_int_eq(prlimit(daemon->pid, RLIMIT_STACK, &limit, NULL), 0);
    daemon_signal(daemon, SIGUSR2);
    daemon_wait_log(daemon, "upgrade failed, process ");
    daemon_wait_log(daemon, "(7: Argument list too long), the environment has no room for the list "
                            "of ");
    ck_assert_uint_eq(daemon_count_log(daemon, "[error]"), 1);
    WAIT_FOR(daemon_pid(daemon) == daemon->pid);
    upgrade_echo_once(daemon);
    daemon_finish(daemon);
}
END_TEST

static int run_command(struct daemon *daemon, const char *order)
{
    return daemon_run(daemon, "-c", "forkbeard.conf", "-s", order, NULL);
}

START_TEST(asked_for)
{
    struct daemon *daemon = daemon_start_new(2, UPGRADE_ECHO(""));
    char line[128];
    pid_t new;

    ck_assert_int_eq(run_command(daemon, "upgrade"), 0);
    new = daemon_pid(daemon);
    ck_assert_int_ne(new, daemon->pid);
    snprintf(
        line, sizeof(line), "[notice] the new binary serves now, process %d, beside", (int)new);
    ck_assert_msg(strstr(daemon->err, line) != NULL, "%s", daemon->err);
    ck_assert_int_eq(run_command(daemon, "upgrade"), 1);
    ck_assert_ptr_nonnull(
        strstr(daemon->err, "[emerg] an upgrade is under way: the old binary, process "));

    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "status", NULL), 0);
    snprintf(line, sizeof(line), "new binary; the old one is process %d\n", (int)daemon->pid);
    ck_assert_msg(strstr(daemon->out, line) != NULL, "%s", daemon->out);
    daemon_signal(daemon, SIGQUIT);
    upgrade_wait_complete(daemon, new);

    daemon_configure(daemon, UPGRADE_ECHO("unknown x;"));
    ck_assert_int_eq(run_command(daemon, "upgrade"), 1);
    ck_assert_msg(strstr(daemon->err, "[emerg] unknown directive \"unknown\" in ") != NULL &&
                      strstr(daemon->err, "forkbeard.conf:3:1\nunknown x; ") != NULL &&
                      strstr(daemon->err, "upgrade failed: nothing has changed") != NULL,
        "%s", daemon->err);
    ck_assert_int_eq(daemon_pid(daemon), daemon->pid);

    ck_assert_int_eq(listen(daemon->reservations[1], 1), 0);
    daemon_configure(daemon, "events {}\nstream { server { listen 127.0.0.1:$0; echo; } "
                             "server { listen 127.0.0.1:$1; echo; } }");
    daemon_expects(daemon, "Address already in use");
    ck_assert_int_eq(run_command(daemon, "upgrade"), 1);
    ck_assert_msg(strstr(daemon->err, "Address already in use") != NULL, "%s", daemon->err);
    upgrade_echo_once(daemon);
    daemon_stop(daemon, SIGTERM);
    daemon_expects(daemon, "unknown");
    daemon_expects(daemon, "stream { server"); /* the line of the address in use */
    daemon_expects(daemon, "^");
    daemon_finish(daemon);
}
END_TEST

START_TEST(asked_for_without_a_control_socket)
{
    struct daemon *daemon = daemon_start_new(2, UPGRADE_ECHO("control off;"));
    pid_t new = 0;

    ck_assert_int_eq(run_command(daemon, "upgrade"), 0);
    ck_assert_ptr_nonnull(strstr(daemon->err, "SIGUSR2 was sent to process"));
    WAIT_FOR((new = daemon_pid(daemon)) != daemon->pid && new > 0);
    daemon_wait_log(daemon, "serves: the upgrade is complete when");
    upgrade_complete(daemon, new);
    upgrade_echo_once(daemon);
    daemon_finish(daemon);
}
END_TEST

/* Process 1 of a container: needs root. */
START_TEST(refused_in_a_container)
{
    struct daemon *daemon = daemon_create(2);
    pid_t inner;

    if (geteuid() == 0) {
        daemon_configure(daemon, UPGRADE_ECHO(""));
        setenv("FORKBEARD_WRAPPER", "unshare --pid --fork", 1);
        daemon_launch(daemon);
        unsetenv("FORKBEARD_WRAPPER");
        WAIT_FOR(upgrade_read_pid(daemon, "forkbeard.pid") == 1);
        ck_assert_uint_eq(proc_children(daemon->pid, &inner, 1), 1);
        ck_assert_int_eq(kill(inner, SIGUSR2), 0);
        daemon_wait_log(daemon, "upgrade refused: process 1 cannot be replaced");
        upgrade_echo_once(daemon);
        ck_assert_int_eq(kill(inner, SIGTERM), 0);
        ck_assert_int_eq(daemon_wait(daemon), 0);
    }
    daemon_finish(daemon);
}
END_TEST

static void set_variable(void)
{
    setenv("FORKBEARD", "1:p1:l5", 1);
}

START_TEST(anothers_variable_is_ignored)
{
    struct daemon *daemon = daemon_create(2);

    daemon_configure(daemon, UPGRADE_ECHO(""));
    daemon->before_exec = set_variable;
    daemon_expects(daemon, "FORKBEARD is not of the parent process, and is ignored");
    daemon_start(daemon);
    upgrade_echo_once(daemon);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, a_replaced_binary);
    tcase_add_loop_test(tcase, a_broken_binary, 0, (int)countof(broken));
    tcase_add_test(tcase, a_list_too_long);
    tcase_add_test(tcase, asked_for);
    tcase_add_test(tcase, asked_for_without_a_control_socket);
    tcase_add_test(tcase, refused_in_a_container);
    tcase_add_test(tcase, anothers_variable_is_ignored);
}

TEST_MAIN("upgrade_fails", add_tests)

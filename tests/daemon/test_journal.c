/* SPDX-License-Identifier: BSD-2-Clause */
/* The journal, with its socket at a foreign path: the daemon runs in a mount namespace where the
 * path leads to the test's directory. Standard error is a file named by JOURNAL_STREAM. */
#include "daemon/client.h"
#include "daemon/log_receiver.h"
#include "daemon/proc.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ECHO "events {} stream { server { listen 127.0.0.1:$0; echo; } }\n"
#define ENDED "client disconnected, bytes from/to client:"

static struct {
    char directory[80]; /* the socket's path */
    bool other_stream;  /* JOURNAL_STREAM names another than ours */
} journal;

static bool enter_namespace(const char *directory)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", "/run", "tmpfs", 0, "mode=755") == 0 &&
           mkdir("/run/systemd", 0755) == 0 && mkdir("/run/systemd/journal", 0755) == 0 &&
           mount(directory, "/run/systemd/journal", NULL, MS_BIND, NULL) == 0;
}

static void become_journaled(void)
{
    char stream[64];
    struct stat st;

    if (fstat(STDERR_FILENO, &st) == -1 || !enter_namespace(journal.directory))
        _exit(123);
    snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
        (unsigned long long)st.st_ino + journal.other_stream);
    setenv("JOURNAL_STREAM", stream, 1);
}

/* Processes without the right to make namespaces cannot run this test. */
static bool may_enter(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(enter_namespace("/tmp") ? 0 : 1);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static struct daemon *create_daemon(int *receiver)
{
    struct daemon *daemon = daemon_create(1);

    snprintf(journal.directory, sizeof(journal.directory), "%s", daemon_path(daemon, "journal"));
    ck_assert_int_eq(mkdir(journal.directory, 0755), 0);
    daemon->before_exec = become_journaled;
    *receiver = log_receiver_unix(daemon, "journal/socket");
    return daemon;
}

static void finish_daemon(struct daemon *daemon, int receiver)
{
    if (daemon->pid != 0)
        daemon_stop(daemon, SIGTERM);
    log_receiver_end(daemon, "journal/socket", receiver);
    ck_assert_int_eq(rmdir(daemon_path(daemon, "journal")), 0);
    daemon_finish(daemon);
}

static const char *const kinds[] = { "", "master_process off; " };

START_TEST(lines_have_fields)
{
    int receiver;
    struct daemon *daemon = create_daemon(&receiver);
    char server[64];
    const char *line;

    daemon_configure(daemon, "%serror_log stderr info; " ECHO, kinds[_i]);
    daemon_start(daemon);
    client_run_session(daemon->ports[0]);
    line = log_receiver_wait(receiver, ENDED);
    snprintf(server, sizeof(server), "\nFORKBEARD_SERVER=127.0.0.1:%u\n", daemon->ports[0]);
    ck_assert_int_eq(strncmp(line, "PRIORITY=6\n", 11), 0);
    ck_assert_ptr_nonnull(strstr(line, "\nSYSLOG_IDENTIFIER=forkbeard\n"));
    ck_assert_ptr_nonnull(strstr(line, "\nMESSAGE=*1 " ENDED "1/1, session time: "));
    ck_assert_ptr_nonnull(strstr(line, ", reason: finished, client: 127.0.0.1,"));
    ck_assert_ptr_nonnull(strstr(line, "\nFORKBEARD_CONNECTION=1\n"));
    ck_assert_ptr_nonnull(strstr(line, "\nFORKBEARD_CLIENT=127.0.0.1\n"));
    ck_assert_ptr_nonnull(strstr(line, server));
    ck_assert_ptr_nonnull(strstr(line, "\nFORKBEARD_PROTOCOL=echo\n"));
    daemon_stop(daemon, SIGTERM);
    log_receiver_wait(receiver, "MESSAGE=exit");
    finish_daemon(daemon, receiver);
}
END_TEST

/* Standard error gets the lines until the journal is back. */
START_TEST(the_journal_restarts)
{
    int receiver;
    struct daemon *daemon = create_daemon(&receiver);

    daemon_expects(daemon, "<6>");
    daemon_configure(daemon, "%serror_log stderr info; " ECHO, kinds[_i]);
    daemon_start(daemon);
    log_receiver_end(daemon, "journal/socket", receiver);
    client_run_session(daemon->ports[0]);
    WAIT_FOR(strstr(daemon_text(daemon, "daemon.err"), ENDED) != NULL);
    receiver = log_receiver_unix(daemon, "journal/socket");
    for (int64_t until = deadline_ms(); log_receiver_drain(receiver, ENDED) == 0; pause_briefly()) {
        ck_assert_msg(now_ms() < until, "no line arrives");
        client_run_session(daemon->ports[0]);
    }
    finish_daemon(daemon, receiver);
}
END_TEST

/* After a reload the environment is long gone, and a configuration may name standard error anew. */
START_TEST(a_reload_finds_it_again)
{
    int receiver;
    struct daemon *daemon = create_daemon(&receiver);

    daemon_configure(daemon, "error_log stderr info; " ECHO);
    daemon_start(daemon);
    client_run_session(daemon->ports[0]);
    log_receiver_wait(receiver, ENDED);
    daemon_configure(daemon, "worker_processes 2; error_log stderr info; " ECHO);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "gracefully shutting down");
    daemon_wait_log(daemon, "exited with code 0");
    log_receiver_drain(receiver, "");
    client_run_session(daemon->ports[0]);
    log_receiver_wait(receiver, ENDED);
    finish_daemon(daemon, receiver);
}
END_TEST

START_TEST(another_stream_is_not_ours)
{
    int receiver;
    struct daemon *daemon;

    journal.other_stream = true;
    daemon = create_daemon(&receiver);
    daemon_expects(daemon, " [info] ");
    daemon_expects(daemon, " [notice] ");
    daemon_configure(daemon, "error_log stderr info; " ECHO);
    daemon_start(daemon);
    client_run_session(daemon->ports[0]);
    WAIT_FOR(strstr(daemon_text(daemon, "daemon.err"), ENDED) != NULL);
    ck_assert_ptr_null(strstr(daemon_text(daemon, "daemon.err"), "<6>"));
    ck_assert_str_eq(log_receiver_next(receiver), "");
    finish_daemon(daemon, receiver);
}
END_TEST

/* Lines of an access log, in plain form and with a newline. */
START_TEST(an_access_log)
{
    int receiver;
    struct daemon *daemon = create_daemon(&receiver);
    const char *line;

    daemon_configure(daemon,
        "%sevents {} stream { log_format x 'from $remote_addr'; log_format y 'a' '\n' 'b'; "
        "access_log stderr x; access_log stderr y; server { listen 127.0.0.1:$0; echo; } }",
        kinds[_i]);
    daemon_start(daemon);
    client_run_session(daemon->ports[0]);
    line = log_receiver_wait(receiver, "MESSAGE=");
    ck_assert_str_eq(line, "PRIORITY=6\nSYSLOG_IDENTIFIER=forkbeard\nMESSAGE=from 127.0.0.1\n");
    line = log_receiver_wait(receiver, "MESSAGE\n");
    ck_assert_mem_eq(strstr(line, "MESSAGE\n"), "MESSAGE\n\3\0\0\0\0\0\0\0a\nb\n", 20);
    finish_daemon(daemon, receiver);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    if (!may_enter())
        return;
    tcase_add_loop_test(tcase, lines_have_fields, 0, 2);
    tcase_add_loop_test(tcase, the_journal_restarts, 0, 2);
    tcase_add_loop_test(tcase, an_access_log, 0, 2);
    tcase_add_test(tcase, a_reload_finds_it_again);
    tcase_add_test(tcase, another_stream_is_not_ours);
}

TEST_MAIN("journal", add_tests)

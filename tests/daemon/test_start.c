/* SPDX-License-Identifier: BSD-2-Clause */
/* How a daemon begins, or does not: pid file, parent, descriptors, signals, what is in the way. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ECHO "events {} stream { server { listen 127.0.0.1:$0; echo; } }\n"

/* A failed start in the background reports the failure while the failed child is still ending. */
static int run_binary(struct daemon *daemon, const char *conf, const char *globals)
{
    int code = daemon_run(daemon, "-c", conf, "-g", globals, NULL);

    proc_reap_orphans();
    return code;
}

static void check_echo(const struct daemon *daemon)
{
    int client = client_open(daemon->ports[0]);

    client_echo(client, "hello");
    close(client);
}

START_TEST(serves_and_ends)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, ECHO);
    ck_assert_int_eq(client_error(daemon->ports[0]), ECONNREFUSED);
    daemon_start(daemon);
    check_echo(daemon);
    daemon_stop(daemon, SIGQUIT);
    ck_assert_int_eq(client_error(daemon->ports[0]), ECONNREFUSED);
    ck_assert(!daemon_has(daemon, "forkbeard.pid"));
    daemon_finish(daemon);
}
END_TEST

/* Looked at without a pause: daemon_pid() fails where it is there and holds no number. */
START_TEST(pid_file_means_ready)
{
    struct daemon *daemon = daemon_create(1);
    int64_t until;

    daemon_configure(daemon, "worker_processes 4;" ECHO);
    for (int i = 0; i < 4; i++) {
        daemon_launch(daemon);
        until = deadline_ms();
        while (daemon_pid(daemon) == 0)
            ck_assert_int_lt(now_ms(), until);
        ck_assert_int_eq(client_error(daemon->ports[0]), 0);
        ck_assert_int_eq(daemon_pid(daemon), daemon->pid);
        ck_assert_uint_eq(proc_child_n(daemon->pid), 4);
        daemon_stop(daemon, SIGTERM);
    }
    daemon_finish(daemon);
}
END_TEST

START_TEST(second_master_is_refused)
{
    struct daemon *daemon = daemon_create(2);
    char line[256];

    daemon_configure(daemon, ECHO);
    daemon_write(daemon, "second.conf",
        "error_log error.log; pid forkbeard.pid; daemon %s;"
        "events {} stream { server { listen 127.0.0.1:$1; echo; } }",
        _i == 0 ? "off" : "on");
    daemon_start(daemon);
    daemon_expects(daemon, "another master process");
    ck_assert_int_eq(daemon_run(daemon, "-c", "second.conf", NULL), 75);
    snprintf(line, sizeof(line),
        "forkbeard: [emerg] another master process %d runs with the pid file \"%s\": stop it, or "
        "set a different \"pid\"\n",
        (int)daemon->pid, daemon_path(daemon, "forkbeard.pid"));
    ck_assert_str_eq(daemon->err, line);
    ck_assert_int_eq(daemon_pid(daemon), daemon->pid);
    check_echo(daemon);
    daemon_stop(daemon, SIGTERM);
    proc_reap_orphans();
    daemon_finish(daemon);
}
END_TEST

static void listen_on(const struct daemon *daemon, unsigned i)
{
    ck_assert_int_eq(listen(daemon->reservations[i], 1), 0);
}

/* Variants: in the foreground, in the background, without a master. */
static const char *const variants[] = { "daemon off;", "daemon on;", "daemon off;" };
static const char *const directives[] = { "", "", "master_process off; " };

static unsigned count_lines(const char *text)
{
    unsigned n = 0;

    while ((text = strchr(text, '\n')) != NULL) {
        text++;
        n++;
    }
    return n;
}

START_TEST(port_in_use)
{
    struct daemon *daemon = daemon_create(1);
    char expected[128];

    daemon_configure(daemon, "%s" ECHO, directives[_i]);
    listen_on(daemon, 0);
    snprintf(expected, sizeof(expected),
        "[emerg] bind() to 127.0.0.1:%u failed (98: Address already in use) in %s:",
        daemon->ports[0], daemon_path(daemon, "forkbeard.conf"));
    daemon_expects(daemon, "bind()");
    ck_assert_int_eq(run_binary(daemon, "forkbeard.conf", variants[_i]), 75);
    ck_assert_ptr_nonnull(strstr(daemon->err, expected));
    ck_assert_uint_eq(count_lines(daemon->err), 3); /* with the line of the file, and the mark */
    ck_assert_str_eq(daemon->out, "");
    ck_assert_uint_eq(daemon_count_log(daemon, "failed (98: Address already in use)"), 1);
    daemon_finish(daemon);
}
END_TEST

/* The daemon's line about the failed bind, and the excerpt below. */
static void check_failed_bind(struct daemon *daemon, const char *address, const char *error,
    unsigned line, const char *excerpt)
{
    char expected[512];

    snprintf(expected, sizeof(expected),
        "forkbeard: [emerg] bind() to %s failed (%s) in %s:%u:20\n%s\n%19s^~~~", address, error,
        daemon_path(daemon, "forkbeard.conf"), line, excerpt, "");
    ck_assert_msg(strstr(daemon->err, expected) != NULL, "%s not in %s", expected, daemon->err);
}

START_TEST(each_failed_bind_is_shown)
{
    struct daemon *daemon = daemon_create(3);
    char address[3][128], excerpt[256];

    daemon_configure(daemon,
        "%sevents {} stream {\n"
        " server { listen   127.0.0.1:$0; echo; }\n"
        " server { listen   127.0.0.1:$1; echo; }\n"
        " server { listen   127.0.0.1:$2; echo; }\n"
        " server { listen   unix:$D/none/such; echo; }\n}\n",
        directives[_i]);
    listen_on(daemon, 0);
    listen_on(daemon, 2);
    for (int i = 0; i < 2; i++)
        snprintf(address[i], sizeof(address[i]), "127.0.0.1:%u", daemon->ports[2 * i]);
    snprintf(address[2], sizeof(address[2]), "unix:%s", daemon_path(daemon, "none/such"));
    daemon_expects(daemon, "bind()");
    ck_assert_int_eq(run_binary(daemon, "forkbeard.conf", variants[_i]), 1);
    for (int i = 0; i < 3; i++) {
        snprintf(excerpt, sizeof(excerpt), " server { listen   %s; echo; }", address[i]);
        check_failed_bind(daemon, address[i],
            i < 2 ? "98: Address already in use" : "2: No such file or directory",
            (unsigned[]) { 4, 6, 7 }[i], excerpt);
    }
    ck_assert_uint_eq(daemon_count_log(daemon, "[emerg]"), 3);
    ck_assert_int_eq(client_error(daemon->ports[1]), ECONNREFUSED);
    daemon_finish(daemon);
}
END_TEST

START_TEST(worker_cannot_start)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, "worker_processes 2; working_directory nowhere;" ECHO);
    daemon_expects(daemon, "/nowhere\") failed (2: No such file or directory)");
    daemon_expects(daemon, "a worker process could not start, nothing is served");
    ck_assert_int_eq(run_binary(daemon, "forkbeard.conf", variants[_i]), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "nothing is served"));
    ck_assert_uint_ge(daemon_count_log(daemon, "chdir("), 1);
    ck_assert_uint_eq(daemon_count_log(daemon, "nothing is served"), 1);
    daemon_finish(daemon);
}
END_TEST

START_TEST(pid_file_in_the_way)
{
    struct daemon *daemon = daemon_create(1);
    char path[128];

    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "directory"));
    ck_assert_int_eq(mkdir(path, 0700), 0);
    daemon_write(
        daemon, "forkbeard.conf", "%serror_log error.log; pid directory;" ECHO, directives[_i]);
    daemon_expects(daemon, "is not a regular file");
    ck_assert_int_eq(run_binary(daemon, "forkbeard.conf", variants[_i]), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "/directory\" exists and is not a regular file"));
    ck_assert_int_eq(rmdir(path), 0);
    daemon_finish(daemon);
}
END_TEST

START_TEST(no_configuration)
{
    struct daemon *daemon = daemon_create(1);
    char expected[256];

    ck_assert_int_eq(run_binary(daemon, "none.conf", variants[_i]), 1);
    snprintf(expected, sizeof(expected),
        "forkbeard: [emerg] open() \"%s\" failed (2: No such file or directory)\n",
        daemon_path(daemon, "none.conf"));
    ck_assert_str_eq(daemon->err, expected);

    daemon_configure(daemon,
        "events {}\nstream {\n    server { listen 127.0.0.1:$0; ecko; }\n}\n"
        "worker_processes none;\n%s",
        directives[_i]);
    ck_assert_int_eq(run_binary(daemon, "forkbeard.conf", variants[_i]), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "forkbeard.conf:5:"));
    ck_assert_ptr_nonnull(strstr(daemon->err, "did you mean \"echo\""));
    ck_assert_ptr_nonnull(strstr(daemon->err, "forkbeard.conf:7:18"));
    ck_assert(!daemon_has(daemon, "error.log"));
    daemon_finish(daemon);
}
END_TEST

static void check_detached(pid_t pid, const char *error)
{
    ck_assert_str_eq(proc_link(pid, "fd/0"), "/dev/null");
    ck_assert_str_eq(proc_link(pid, "fd/1"), "/dev/null");
    ck_assert_str_eq(proc_link(pid, "fd/2"), error);
}

/* The last words of a worker go to the error log. */
static void check_worker_detached(struct daemon *daemon, pid_t pid)
{
    char log[PATH_MAX];

    snprintf(log, sizeof(log), "%s", daemon_path(daemon, "error.log"));
    check_detached(pid, log);
}

START_TEST(background_lets_go)
{
    struct daemon *daemon = daemon_create(1);
    pid_t workers[2];

    daemon_configure(daemon, "worker_processes 2;" ECHO);
    ck_assert_int_eq(daemon_start_background(daemon), 0);
    check_echo(daemon); /* at once */
    ck_assert_str_eq(daemon->err, "");
    ck_assert_str_eq(daemon->out, "");
    ck_assert_int_eq(getsid(daemon->pid), daemon->pid);
    ck_assert_uint_eq(proc_children(daemon->pid, workers, 2), 2);
    check_detached(daemon->pid, "/dev/null");
    check_worker_detached(daemon, workers[0]);
    check_worker_detached(daemon, workers[1]);
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

static void close_standard(void)
{
    for (int fd = 0; fd < 3; fd++)
        close(fd);
}

/* With standard descriptors closed, a log or a socket would get their numbers, and stray output
 * would go there. */
START_TEST(closed_descriptors)
{
    struct daemon *daemon = daemon_create(1);
    pid_t worker;

    daemon_configure(daemon, ECHO);
    daemon->before_exec = close_standard;
    daemon_start(daemon);
    check_echo(daemon);
    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    check_detached(daemon->pid, "/dev/null");
    check_worker_detached(daemon, worker);
    daemon_finish(daemon);
}
END_TEST

static void spoil_signals(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    signal(SIGHUP, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
}

START_TEST(inherited_signals_are_reset)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, ECHO);
    daemon->before_exec = spoil_signals;
    daemon_start(daemon);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "(SIGHUP) received from ");
    daemon_wait_log(daemon, "exited with code 0");
    check_echo(daemon);
    daemon_stop(daemon, _i == 0 ? SIGTERM : SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

START_TEST(titles)
{
    struct daemon *daemon = daemon_create(1);
    pid_t worker;
    const char *title;

    daemon_configure(daemon, ECHO);
    daemon_start(daemon);
    title = proc_text(daemon->pid, "cmdline");
    ck_assert_msg(strncmp(title, "forkbeard: master process ", 26) == 0, "%s", title);
    ck_assert_ptr_nonnull(strstr(title, "forkbeard -c forkbeard.conf -g daemon off;"));
    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    title = proc_text(worker, "cmdline");
    ck_assert_msg(strncmp(title, "forkbeard: worker process", 25) == 0, "%s", title);
    ck_assert_uint_eq(strspn(title + 25, " "), strlen(title + 25));
    daemon_finish(daemon);
}
END_TEST

/* With master_process off too. */
START_TEST(the_log_names_what_starts)
{
    struct daemon *daemon = daemon_create(1);
    char line[256];

    daemon_configure(daemon, "%s" ECHO, _i == 0 ? "" : "master_process off; ");
    daemon_start(daemon);
    snprintf(line, sizeof(line),
        " [notice] %d#0: forkbeard/" PACKAGE_VERSION " starts: using the \"", (int)daemon->pid);
    ck_assert_uint_eq(daemon_count_log(daemon, line), 1);
    snprintf(line, sizeof(line), "\" event method, configuration file %s, built by ",
        daemon_path(daemon, "forkbeard.conf"));
    ck_assert_ptr_nonnull(strstr(daemon_text(daemon, daemon->log), line));
    ck_assert_uint_eq(daemon_count_log(daemon, ", OS: Linux "), 1);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, serves_and_ends);
    tcase_add_test(tcase, pid_file_means_ready);
    tcase_add_loop_test(tcase, second_master_is_refused, 0, 2);
    tcase_add_loop_test(tcase, port_in_use, 0, 3);
    tcase_add_loop_test(tcase, each_failed_bind_is_shown, 0, 3);
    tcase_add_loop_test(tcase, worker_cannot_start, 0, 2);
    tcase_add_loop_test(tcase, pid_file_in_the_way, 0, 3);
    tcase_add_loop_test(tcase, no_configuration, 0, 3);
    tcase_add_loop_test(tcase, the_log_names_what_starts, 0, 2);
    tcase_add_test(tcase, background_lets_go);
    tcase_add_loop_test(tcase, inherited_signals_are_reset, 0, 2);
    if (!is_wrapped()) { /* valgrind needs descriptors, and changes the title in /proc */
        tcase_add_test(tcase, closed_descriptors);
        tcase_add_test(tcase, titles);
    }
}

TEST_MAIN("start", add_tests)

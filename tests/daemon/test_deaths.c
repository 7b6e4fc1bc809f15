/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers ended by a protocol, or made useless: all are replaced, and the log and the status name
 * the cause. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROGUE "load_module " MODULES_PATH "/rogue.so;\n"
#define SERVER "stream { server { listen 127.0.0.1:$0; rogue; } }\n"
#define OF_ROGUE " of protocol \"rogue\""
#define LOST ", 1 session was lost"
#define UNABLE ": it could not wait for events (9: Bad file descriptor)"

static const struct {
    const char *letter, *line, *cause;
    const char *events;
} deaths[] = {
    { "k", "in callback \"data\"" OF_ROGUE LOST, "signal", "" },
    { "t", "in callback \"worker_ops.timer\"" OF_ROGUE LOST, "signal", "" },
    { "x", "called exit(0) in callback \"data\"" OF_ROGUE LOST, "exit", "" },
    { "y", "called exit(3) in callback \"data\"" OF_ROGUE LOST, "exit", "" },
    { "p", "called pthread_exit() in callback \"data\"" OF_ROGUE LOST, "exit", "" },
    { "jp", "called pthread_exit() in callback \"data\"" OF_ROGUE ", or in a job" OF_ROGUE LOST,
        "exit", "" },
    /* the callback that has queued the job may not have returned yet */
    { "K", "in a job" OF_ROGUE LOST, "signal", "" },
    { "X", "in a job" OF_ROGUE LOST, "exit", "" },
    { "P", "in a job" OF_ROGUE LOST, "exit", "" },
    { "C", "exited on signal 9, killed: it had closed the channel to the master", "channel_lost",
        "" },
    { "e", UNABLE, "wait_failed", "use epoll;" },
    { "a", UNABLE, "wait_failed", "use epoll;" },
    { "a", UNABLE, "wait_failed", "use poll;" },
    { "a", UNABLE, "wait_failed", "use select;" },
};

static void expect_death(struct daemon *daemon, const char *line)
{
    daemon_expects(daemon, line);
    daemon_expects(daemon, "died at once (1 in a row)"); /* the worker is young */
    if (is_wrapped()) /* a sanitizer reports fatal signals itself */
        daemon_expects(daemon, "==");
}

static int64_t count_deaths(const struct daemon *daemon, const char *cause)
{
    struct json_value answer = control_ask(daemon, "status");

    return control_number(json_member(answer, "deaths"), cause);
}

/* A worker's death affects only its own session, apart from the time until the replacement. */
START_TEST(death_names_its_cause)
{
    struct daemon *daemon = daemon_create(1);
    char text[128];
    pid_t worker;
    int client;

    daemon_configure(daemon, ROGUE "events { %s } " SERVER, deaths[_i].events);
    daemon->before_exec = daemon_ignore_leaks; /* exit() leaves much behind */
    daemon_start(daemon);
    client = client_open(daemon->ports[0]);
    expect_death(daemon, deaths[_i].line);
    daemon_expects(daemon, "failed (9: Bad file descriptor)");
    daemon_expects(daemon, "is not open");
    daemon_expects(daemon, "the master process has gone"); /* the loss is noticed here */
    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    ck_assert_int_eq(count_deaths(daemon, deaths[_i].cause), 0);
    if (deaths[_i].letter[1] != '\0')
        client_echo(client, "j");
    client_send(client, deaths[_i].letter + strlen(deaths[_i].letter) - 1);
    daemon_wait_log(daemon, deaths[_i].line);
    WAIT_FOR(proc_state(worker) == 0);
    ck_assert_int_eq(count_deaths(daemon, deaths[_i].cause), 1);
    close(client);
    client = client_open(daemon->ports[0]);
    client_echo(client, "?");
    close(client);
    ck_assert_int_eq(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 0);
    snprintf(text, sizeof(text), "\ndeaths of workers: 1 %s\n", deaths[_i].cause);
    ck_assert_ptr_nonnull(strstr(daemon->out, text));
    ck_assert_uint_le(daemon_count_log(daemon, "is not open"), 16); /* no spinning */
    daemon_finish(daemon);
}
END_TEST

static const struct {
    const char *way, *line;
} starts[] = {
    { "crash", " in callback \"worker_start\"" OF_ROGUE },
    { "exit", "called exit(4) in callback \"worker_start\"" OF_ROGUE },
};

START_TEST(death_at_the_start)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        ROGUE "events {} stream { rogue_start %s; server { listen 127.0.0.1:$0; rogue; } }",
        starts[_i].way);
    expect_death(daemon, starts[_i].line);
    daemon_expects(daemon, "a worker process could not start, nothing is served");
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", NULL), 1);
    proc_reap_orphans();
    ck_assert_uint_eq(daemon_count_log(daemon, starts[_i].line), 1);
    daemon_finish(daemon);
}
END_TEST

START_TEST(death_at_the_stop)
{
    struct daemon *daemon = daemon_start_new(
        1, ROGUE "events {} stream { rogue_stop crash; server { listen 127.0.0.1:$0; rogue; } }");

    expect_death(daemon, " in callback \"worker_stop\"" OF_ROGUE);
    daemon_stop(daemon, SIGQUIT);
    daemon_wait_log(daemon, " in callback \"worker_stop\"" OF_ROGUE);
    daemon_finish(daemon);
}
END_TEST

START_TEST(use_of_an_ended_connection_names_the_protocol)
{
    struct daemon *daemon = daemon_start_new(1, ROGUE "events {} " SERVER);
    int other = client_open(daemon->ports[0]), client = client_open(daemon->ports[0]);

    daemon_expects(daemon, "fb_write() of a connection that has ended, by protocol \"rogue\"");
    client_send(client, "o");
    client_expect_end(client);
    client_send(other, "u");
    client_expect(other, "u");
    close(other);
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* Without a filter, or where programs may be run, there is a child, which ends when it comes back
 * or calls the SDK; without a request there is no child. */
static const struct {
    const char *module, *sandbox;
    bool allowed;
} modes[] = {
    { "rogue", "off", true },
    { "rogue", "on", false },
    { "rogue", "strict", false },
    { "rogue_exec", "on", true },
    { "rogue_exec", "strict", true },
};

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true /* the runtime wants processes of its own */
#else
#define SANITIZED false
#endif

static const char *const forks[] = { "c", "w", "r" };

START_TEST(fork_makes_no_second_worker)
{
    bool allowed = modes[_i].allowed || SANITIZED;
    struct daemon *daemon = daemon_create(1);
    pid_t worker;
    int client, other;

    daemon_configure(daemon, "load_module " MODULES_PATH "/%s.so; sandbox %s; events {} " SERVER,
        modes[_i].module, modes[_i].sandbox);
    daemon_start(daemon);
    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    client = client_open(daemon->ports[0]);
    other = client_open(daemon->ports[0]);
    client_echo(other, "?");
    for (size_t i = 0; i < sizeof(forks) / sizeof(forks[0]); i++) {
        client_send(client, forks[i]);
        client_expect(client, allowed ? forks[i] : "n");
        WAIT_FOR(proc_child_n(worker) == 0);
    }
    client_send(client, "F"); /* in a job */
    client_expect(client, "F");
    WAIT_FOR(proc_child_n(worker) == 0);
    for (int i = 0; i < 20; i++) {
        client_echo(other, "?");
        client_echo(client, "?");
    }
    ck_assert(client_is_quiet(client) && client_is_quiet(other));
    close(client);
    client_expect_gone((shutdown(other, SHUT_WR), other));
    close(other);
    ck_assert_uint_eq(proc_child_n(daemon->pid), 1);
    daemon_finish(daemon);
}
END_TEST

/* A daemon with a standard error to nowhere, as in the background. */
static struct daemon *start_unheard(const char *logs)
{
    struct daemon *daemon = daemon_create(1);

    daemon_write(
        daemon, "forkbeard.conf", "%s pid forkbeard.pid; " ROGUE "events {} " SERVER, logs);
    daemon->standard_error = open("/dev/null", O_WRONLY | O_CLOEXEC);
    ck_assert_int_ne(daemon->standard_error, -1);
    daemon_expects(daemon, "rogue has something to say");
    daemon_expects(daemon, "`letter == 'a'' failed");
    daemon_start(daemon);
    return daemon;
}

static const struct {
    const char *logs;
    const char *before; /* the line is the master's */
} logs[] = {
    { "error_log error.log notice;", "" },
    { "error_log error.log notice json;", "wrote to standard error: " },
    { "error_log syslog:server=unix:$D/nobody; error_log error.log;", "" },
};

/* A module's output reaches the log, the last lines before the report of its end. */
START_TEST(words_of_a_module_reach_the_log)
{
    struct daemon *daemon = start_unheard(logs[_i].logs);
    const char *says, *dies;
    int client;
    char text[128];

    daemon_expects(daemon, "connect() to syslog server");
    expect_death(daemon, "in callback \\\"data\\\"");
    expect_death(daemon, "in callback \"data\"");
    client = client_open(daemon->ports[0]);
    client_echo(client, "l");
    snprintf(text, sizeof(text), "%srogue has something to say", logs[_i].before);
    daemon_wait_log(daemon, text);
    client_send(client, "A");
    client_expect_gone(client);
    daemon_wait_log(daemon, "died at once");
    says = strstr(daemon_text(daemon, daemon->log), "`letter == 'a'' failed");
    ck_assert_ptr_nonnull(says);
    dies = strstr(daemon_text(daemon, daemon->log), "exited on signal 6");
    ck_assert_ptr_nonnull(dies);
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* A reopened log continues to take the output. */
START_TEST(words_follow_a_log_that_is_opened_again)
{
    struct daemon *daemon = start_unheard(logs[0].logs);
    int client = client_open(daemon->ports[0]);
    char before[128];

    snprintf(before, sizeof(before), "%s/before", daemon->directory);
    ck_assert_int_eq(rename(daemon_path(daemon, "error.log"), before), 0);
    daemon_owns(daemon, "before");
    daemon_signal(daemon, SIGUSR1);
    WAIT_FOR(daemon_has(daemon, "error.log"));
    WAIT_FOR((client_echo(client, "l"),
        strstr(daemon_text(daemon, "error.log"), "rogue has something to say") != NULL));
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* Neither the worker nor the master waits for the other, and the log is not flooded. */
START_TEST(a_talkative_module_waits_for_nobody)
{
    struct daemon *daemon = start_unheard(logs[1].logs);
    int client = client_open(daemon->ports[0]);

    daemon_expects(daemon, "rogue says this");
    client_echo(client, "L");
    client_echo(client, "?");
    daemon_wait_log(daemon, "rogue says this 20,000 times");
    ck_assert_int_eq(count_deaths(daemon, "signal"), 0);
    ck_assert_uint_le(daemon_count_log(daemon, "rogue says this"), 200);
    close(client);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, death_names_its_cause, 0, (int)(sizeof(deaths) / sizeof(deaths[0])));
    tcase_add_loop_test(tcase, death_at_the_start, 0, (int)(sizeof(starts) / sizeof(starts[0])));
    tcase_add_test(tcase, death_at_the_stop);
    tcase_add_loop_test(
        tcase, words_of_a_module_reach_the_log, 0, (int)(sizeof(logs) / sizeof(logs[0])));
    tcase_add_test(tcase, words_follow_a_log_that_is_opened_again);
    tcase_add_test(tcase, a_talkative_module_waits_for_nobody);
    tcase_add_test(tcase, use_of_an_ended_connection_names_the_protocol);
    tcase_add_loop_test(
        tcase, fork_makes_no_second_worker, 0, (int)(sizeof(modes) / sizeof(modes[0])));
}

TEST_MAIN("deaths", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers breaking the rules of the channel to the master, or not reading the channel. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIGURATION                                                                              \
    "load_module " MODULES_PATH "/offender.so;\n"                                                  \
    "worker_processes 2; worker_watchdog 0; %s\n"                                                  \
    "events { accept_mutex off; }\n"                                                               \
    "stream { server { listen 127.0.0.1:$0; offender; } }\n"

#define LOG_GROWTH_MAX 32768

/* A daemon of two workers, with a client of both, and the state before the attack. */
struct scene {
    struct daemon *daemon;
    int attacker, bystander;
    pid_t attacked;
    unsigned descriptors;
    off_t log_size;
};

static off_t log_size(const struct scene *scene)
{
    struct stat status;

    ck_assert_int_eq(stat(daemon_path(scene->daemon, scene->daemon->log), &status), 0);
    return status.st_size;
}

static void begin(struct scene *scene, const char *main)
{
    struct daemon *daemon = daemon_start_new(1, CONFIGURATION, main);

    scene->daemon = daemon;
    scene->attacker = client_open(daemon->ports[0]);
    client_echo(scene->attacker, "?");
    scene->attacked = proc_server_of(daemon->pid, scene->attacker);
    for (int64_t until = deadline_ms();;) {
        scene->bystander = client_open(daemon->ports[0]);
        client_echo(scene->bystander, "?");
        if (proc_server_of(daemon->pid, scene->bystander) != scene->attacked)
            break;
        close(scene->bystander);
        ck_assert_int_lt(now_ms(), until);
    }
    scene->descriptors = proc_descriptors(daemon->pid);
    scene->log_size = log_size(scene);
}

/* The master replies, and the second worker serves. */
static void check_bystanders(const struct scene *scene)
{
    ck_assert(control_is_ok(control_ask(scene->daemon, "status")));
    client_echo(scene->bystander, "?");
}

static void finish(struct scene *scene)
{
    WAIT_FOR(proc_child_n(scene->daemon->pid) == 2);
    check_bystanders(scene);
    WAIT_FOR(proc_descriptors(scene->daemon->pid) == scene->descriptors);
    ck_assert_int_lt(log_size(scene) - scene->log_size, LOG_GROWTH_MAX);
    close(scene->attacker);
    close(scene->bystander);
    daemon_stop(scene->daemon, SIGTERM);
    daemon_finish(scene->daemon);
}

static const struct {
    const char *letter, *rule;
} attacks[] = {
    { "f", "more than 1000 messages a second" },
    { "w", "requests with unread replies" },
    { "b", "more than 1000 messages a second" },
    { "e", "a message of a wrong length" },
};

START_TEST(a_worker_that_breaks_a_rule_is_replaced)
{
    struct scene scene;
    char line[160];

    begin(&scene, "");
    daemon_expects(scene.daemon, "has broken a rule of the channel");
    daemon_expects(scene.daemon, "exited on signal 9");
    daemon_expects(scene.daemon, "a worker process died at once");
    client_send(scene.attacker, attacks[_i].letter);
    snprintf(line, sizeof(line), "process %d has broken a rule of the channel (%s), and is killed",
        (int)scene.attacked, attacks[_i].rule);
    while (proc_state(scene.attacked) != 0)
        check_bystanders(&scene);
    daemon_wait_log(scene.daemon, line);
    daemon_wait_log(scene.daemon, "start worker process");
    finish(&scene);
}
END_TEST

/* A kernel before Linux 6.16 delivers the descriptors; then the worker has broken a rule. */
START_TEST(nobody_waits_for_a_socket_that_is_passed)
{
    struct scene scene;

    begin(&scene, "sandbox off;"); /* the sandbox denies SO_LINGER */
    daemon_expects(scene.daemon, "has broken a rule of the channel (a descriptor was passed)");
    daemon_expects(scene.daemon, "exited on signal 9");
    daemon_expects(scene.daemon, "a worker process died at once");
    client_send(scene.attacker, "d");
    for (int i = 0; i < 20; i++)
        check_bystanders(&scene);
    kill(scene.attacked, SIGKILL); /* closes what lies in the channel, too */
    daemon_wait_log(scene.daemon, "exited on signal 9");
    finish(&scene);
}
END_TEST

/* Whether a process has a file of the name open. */
static bool has_open(pid_t pid, const char *name)
{
    char link[16];

    for (int fd = 0; fd < 64; fd++) {
        snprintf(link, sizeof(link), "fd/%d", fd);
        if (strstr(proc_link(pid, link), name) != NULL)
            return true;
    }
    return false;
}

static void reopen_logs(int control, int times)
{
    for (int i = 0; i < times; i++) {
        control_send(control, "reopen");
        ck_assert(control_is_ok(control_receive(control)));
    }
}

#define REOPENINGS 400 /* more than a channel holds */

START_TEST(a_worker_that_does_not_read_loses_nothing)
{
    struct scene scene;
    char old[128];
    int control;

    begin(&scene, "");
    snprintf(old, sizeof(old), "%s", daemon_path(scene.daemon, "old.log"));
    daemon_owns(scene.daemon, "old.log");
    proc_freeze(scene.attacked);
    control = control_open(scene.daemon);
    reopen_logs(control, REOPENINGS);
    ck_assert_uint_eq(daemon_count_log(scene.daemon, "[alert]"), 0);
    ck_assert_int_eq(rename(daemon_path(scene.daemon, scene.daemon->log), old), 0);
    reopen_logs(control, 1);
    close(control);
    check_bystanders(&scene);
    ck_assert(has_open(scene.attacked, "old.log"));
    ck_assert_int_eq(kill(scene.attacked, SIGCONT), 0);
    WAIT_FOR(!has_open(scene.attacked, "old.log"));
    WAIT_FOR(has_open(scene.attacked, scene.daemon->log)); /* the last opening may come later */
    client_echo(scene.attacker, "?");
    close(scene.attacker);
    close(scene.bystander);
    daemon_stop(scene.daemon, SIGTERM);
    daemon_finish(scene.daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, a_worker_that_breaks_a_rule_is_replaced, 0,
        (int)(sizeof(attacks) / sizeof(attacks[0])));
    tcase_add_test(tcase, nobody_waits_for_a_socket_that_is_passed);
    tcase_add_test(tcase, a_worker_that_does_not_read_loses_nothing);
}

TEST_MAIN("channel", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reloads: their changes, failures of the check and of the master's own reading, and an end of the
 * daemon in every phase. Failures of the new generation are in tests/pool. */
#include "plays/case.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define CHECK_MS 60000 /* CONFIG_CHECK_MS */

static bool is_served(struct play *play, const char *name)
{
    struct play_client *client = play_request(play, name, "");
    bool served;

    if (client == NULL)
        return false;
    client->of_control = false;
    play_settle(play);
    served = client->replied;
    play_client_close(play, client);
    return served;
}

START_TEST(test_start_serves)
{
    struct play *play = case_start(2, "", "");

    ck_assert_uint_eq(play_count_workers(play), 2);
    ck_assert(is_served(play, "socket"));
    ck_assert_str_eq(case_status(play, "state"), "running");
    ck_assert_str_eq(case_status(play, "reload"), "null");
    play_destroy(play);
}
END_TEST

/* By the signal, and by a client who is told of the generation. */
START_TEST(test_reload_replaces_workers)
{
    struct play *play = case_start(2, "", "");
    struct play_worker *before = play_worker_find(play, 0);
    struct play_client *client = NULL;

    before->process->kept = true;
    if (_i == 0)
        play_signal(play_main(play), SIGHUP);
    else
        client = case_command(play, "reload");
    play_pass(play, 1000);
    ck_assert_uint_eq(play_count_workers(play), 2);
    ck_assert(before->process->exited);
    ck_assert_int_eq(play_exit_code(before->process), 0);
    ck_assert_uint_eq(case_generation(play), 2);
    ck_assert_str_eq(case_status(play, "reload.ok"), "true");
    if (client != NULL)
        ck_assert_ptr_nonnull(strstr(client->line, "{\"ok\":true,\"generation\":2"));
    play_destroy(play);
}
END_TEST

START_TEST(test_listeners_and_workers_change)
{
    struct play *play = case_start(1, "", "server { listen unix:$D/first; echo; }");

    ck_assert(is_served(play, "first") && !is_served(play, "second"));
    play_configure(play, 3, "", "server { listen unix:$D/second; echo; }");
    case_reload(play);
    ck_assert(!case_has(play, "first"));
    ck_assert(is_served(play, "second") && is_served(play, "socket"));
    ck_assert_uint_eq(play_count_workers(play), 3);
    play_configure(play, 2, "", "");
    case_reload(play);
    ck_assert(!case_has(play, "second"));
    ck_assert_uint_eq(play_count_workers(play), 2);
    play_destroy(play);
}
END_TEST

#define OTHER_NAMES                                                                                \
    "daemon off; sandbox off; error_log $D/other.log notice; pid $D/other.pid;"                    \
    "control unix:$D/other.control; events { } stream { server { listen unix:$D/socket; echo; } }"

/* The pid file, the control socket and the log move with the configuration. */
START_TEST(test_names_move)
{
    struct play *play = case_start(1, "", "");
    struct play_process *master = play_main(play);

    play_write(play, "conf", OTHER_NAMES);
    case_reload(play);
    ck_assert(!case_has(play, "pid") && !case_has(play, "pid.lock") && !case_has(play, "control"));
    ck_assert(case_has(play, "other.pid") && case_has(play, "other.log"));
    ck_assert_str_eq(case_status_of(play, "other.control", "state"), "running");
    play_signal(master, SIGINT);
    play_settle(play);
    unlink(play_path(play, "other.log"));
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* Failures before the new generation starts. */

static const struct {
    const char *main, *says;
} mistakes[] = {
    { "mistake;", "unknown directive \\\"mistake\\\"" },
    { "worker_processes;", "worker_processes" },
    { "load_module nowhere.so;", "nowhere.so" },
    { "error_log $D/nowhere/x.log;", "nowhere/x.log\\\" failed (2: No such file" },
};

static void expect_unchanged(struct play *play, const struct play_client *client, const char *says)
{
    ck_assert_uint_eq(play_count_workers(play), 2);
    case_expect_failure(client, says);
    ck_assert_ptr_nonnull(strstr(client->line, "\"generation\":1"));
    ck_assert_uint_eq(case_generation(play), 1);
    ck_assert_str_eq(case_status(play, "state"), "running");
    ck_assert_str_eq(case_status(play, "reload.ok"), "false");
    ck_assert(is_served(play, "socket"));
    ck_assert(play_has_logged(play, "reload failed: the previous configuration stays in force"));
    play_configure(play, 2, "", "");
    case_reload(play);
    ck_assert_str_eq(case_status(play, "reload.ok"), "true");
    play_destroy(play);
}

START_TEST(test_mistake)
{
    struct play *play = case_start(2, "", "");

    play_configure(play, 2, mistakes[_i].main, "");
    expect_unchanged(play, case_command(play, "reload"), mistakes[_i].says);
}
END_TEST

/* A name of the daemon cannot be where the configuration wants it. */
static const struct {
    const char *pid, *control, *says;
} names[] = {
    { "nowhere/pid", "control", "nowhere/pid.lock\\\" failed (2: No such file" },
    { "conf", "nowhere/control", "nowhere/control\\\" failed (2: No such file" },
    { "pid", "conf", "conf\\\" exists and is not a socket" },
    { "pid", "taken", "taken\\\" is in use" },
};

START_TEST(test_name_cannot_move)
{
    struct play *play = case_start(2, "", "");
    int fd = case_listen(play, "taken");
    char conf[512];

    snprintf(conf, sizeof(conf),
        "daemon off; sandbox off; error_log $D/error.log info; pid $D/%s; control unix:$D/%s;"
        "events { } stream { server { listen unix:$D/socket; echo; } }",
        names[_i].pid, names[_i].control);
    play_write(play, "conf", conf);
    expect_unchanged(play, case_command(play, "reload"), names[_i].says);
    close(fd);
}
END_TEST

/* The checking process of the configuration does not finish. */

static void crash(struct play_process *check)
{
    play_kill(check, SIGSEGV);
}

static void kill_check(struct play_process *check)
{
    play_signal(check, SIGKILL);
}

static const struct {
    void (*begin)(struct play_process *check);
    const char *says;
} ends[] = {
    { crash, "crashed during the check: signal 11" },
    { kill_check, "was ended during the check: signal 9" },
};

START_TEST(test_check_ends)
{
    struct play *play = case_start(2, "", "");
    struct play_client *client = play_control(play, "control", "reload");

    ends[_i].begin(case_step_to_fork(play, PROCESS_CHECK));
    play_settle(play);
    expect_unchanged(play, client, ends[_i].says);
}
END_TEST

/* The check hangs: it is killed after a minute, and the status tells of the reload until then. */
START_TEST(test_check_hangs)
{
    struct play *play = case_start(2, "", "");
    struct play_client *client = play_control(play, "control", "reload");
    struct play_process *check = case_step_to_fork(play, PROCESS_CHECK);

    check->kept = true;
    play_signal(check, SIGSTOP);
    play_pass(play, CHECK_MS - 1);
    ck_assert_str_eq(case_status(play, "state"), "reloading");
    case_expect_waiting(client);
    play_pass(play, 1);
    ck_assert(check->exited);
    ck_assert_int_eq(play_exit_code(check), 128 + SIGKILL);
    expect_unchanged(play, client, "did not finish during the check: the time limit is 60 seconds");
}
END_TEST

START_TEST(test_check_is_not_forked)
{
    struct play *play = case_start(2, "", "");

    play->failures.fork = 1;
    expect_unchanged(play, case_command(play, "reload"), "fork() failed while checking");
}
END_TEST

/* Many ask at once: one reload, or a few, is the reply to all. */
START_TEST(test_storm)
{
    struct play *play = case_start(2, "", "");
    struct play_client *clients[30];

    for (int i = 0; i < 30; i++) {
        clients[i] = play_control(play, "control", "reload");
        play_signal(play_main(play), SIGHUP);
        for (int j = 0; j < i % 7; j++)
            play_step(play);
    }
    play_pass(play, 5000);
    for (int i = 0; i < 30; i++)
        case_expect_ok(clients[i]);
    ck_assert_uint_eq(play_count_workers(play), 2);
    ck_assert_str_eq(case_status(play, "state"), "running");
    play_destroy(play);
}
END_TEST

/* An end in each phase */

static void stop_check(struct play *play)
{
    play_signal(case_step_to_fork(play, PROCESS_CHECK), SIGSTOP);
    play_settle(play);
}

static void hang_start(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_ready = true;
}

static void hang_commit(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->never_accepts = true;
}

static void crash_accepting(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->crashes_accepting = true;
    play->forked = hang_start;
}

/* Phases of the reload, and whether the new configuration counts as good when the daemon ends. */
static const struct {
    void (*forked)(struct play *play, struct play_process *process);
    bool stops_check, ok;
} phases[] = {
    { NULL, true, false },             /* RELOAD_CHECKING */
    { hang_start, false, false },      /* RELOAD_PREPARING */
    { hang_commit, false, true },      /* RELOAD_COMMITTED */
    { NULL, false, true },             /* RELOAD_PROVING */
    { crash_accepting, false, false }, /* RELOAD_GOING_BACK: the way back does not get ready */
};

#define PHASES (int)(sizeof(phases) / sizeof(phases[0]))

static const int signals[] = { SIGQUIT, SIGTERM, SIGINT };

/* The client has an outcome, the process exits, and nothing is left. */
START_TEST(test_end_in_each_phase)
{
    int phase = _i % PHASES;
    struct play *play = case_start(1, "", "");
    struct play_process *master = play_main(play);
    struct play_client *client;

    play->forked = phases[phase].forked;
    client = play_control(play, "control", "reload");
    if (phases[phase].stops_check)
        stop_check(play);
    play_settle(play);
    case_expect_waiting(client);
    ck_assert_str_eq(case_status(play, "state"), "reloading");
    play_signal(master, signals[_i / PHASES]);
    play_pass(play, 1);
    ck_assert_int_eq(play_client_is_ok(client), phases[phase].ok);
    ck_assert(client->replied);
    play_pass(play, 5000);
    ck_assert(master->exited);
    ck_assert_int_eq(play_exit_code(master), 0);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

/* The lock of the pid file was deleted: a reload restores it, and the names stay. */
START_TEST(test_deleted_lock_is_made_again)
{
    struct play *play = case_start(1, "", "");
    struct play_process *master = play_main(play);

    ck_assert_int_eq(unlink(play_path(play, "pid.lock")), 0);
    case_reload(play);
    ck_assert(case_has(play, "pid.lock") && case_has(play, "pid"));
    ck_assert_ptr_eq(play_main(play), master);
    case_signal(master, SIGINT);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

#define QUIET(size, more)                                                                          \
    "daemon off; sandbox off; error_log $D/error.log error; pid $D/pid; control unix:$D/control;"  \
    "events { } stream { limit_conn_zone $remote_addr zone=a:" size ";"                            \
    " server { listen unix:$D/socket; echo; limit_conn a 5; " more " } }"

/* With a log without warnings, the client of the reload gets them. */
START_TEST(test_reply_has_the_warnings)
{
    struct play *play = case_start(2, "", "");
    struct play_client *client;

    play_write(play, "conf", QUIET("1m", ""));
    case_reload(play);
    play_write(play, "conf", QUIET("2m", "allow 10.0.0.1/8;"));
    client = case_command(play, "reload");
    play_pass(play, 1000);
    case_expect_ok(client);
    ck_assert_ptr_nonnull(strstr(
        client->line, "zone \\\"limit_conn:a\\\" begins empty because the zone's layout changed"));
    ck_assert_ptr_nonnull(strstr(client->line, "low address bits of 10.0.0.1/8 are meaningless"));
    ck_assert(!play_has_logged(play, "[warn]"));
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_reply_has_the_warnings);
    tcase_add_test(tcase, test_deleted_lock_is_made_again);
    tcase_add_test(tcase, test_start_serves);
    tcase_add_loop_test(tcase, test_reload_replaces_workers, 0, 2);
    tcase_add_test(tcase, test_listeners_and_workers_change);
    tcase_add_test(tcase, test_names_move);
    tcase_add_loop_test(tcase, test_mistake, 0, sizeof(mistakes) / sizeof(mistakes[0]));
    tcase_add_loop_test(tcase, test_name_cannot_move, 0, sizeof(names) / sizeof(names[0]));
    tcase_add_loop_test(tcase, test_check_ends, 0, sizeof(ends) / sizeof(ends[0]));
    tcase_add_test(tcase, test_check_hangs);
    tcase_add_test(tcase, test_check_is_not_forked);
    tcase_add_test(tcase, test_storm);
    tcase_add_loop_test(tcase, test_end_in_each_phase, 0, 3 * PHASES);
}

TEST_MAIN("reload", add_tests)

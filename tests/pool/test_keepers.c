/* SPDX-License-Identifier: BSD-2-Clause */
/* Keepers: forked beside workers, connected anew after each death, replaced by a reload and an
 * upgrade, and given the files of the configuration by their index. */
#include "plays/case.h"

#include "channel/channel.h"
#include "tls/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files of the play's directory, in the order of tls_files. */
enum { REGULAR, LINKED, MISSING, FIFO, DIRECTORY, DEVICE, FILES };

static char paths[FILES][128];
static struct tls_file file_list[FILES];
static struct tls_profile profile_list[1];

static const struct tls_profiles profiles = {
    .list = profile_list, .n = 1, .files = file_list, .file_n = FILES
};
static const struct tls_profiles of_a_pair = {
    .list = profile_list, .n = 1, .files = file_list, .file_n = FILES, .pair_n = 1
};

static struct play *start_with(unsigned workers, const struct tls_profiles *tls)
{
    struct play *play = play_create(1);

    play->tls = tls;
    for (unsigned i = 0; i < FILES; i++) {
        static const char *const names[] = { "a.crt", "live.crt", "missing", "fifo" };

        if (i >= DIRECTORY)
            strcpy(paths[i], i == DEVICE ? "/dev/null" : "/dev");
        else
            snprintf(paths[i], sizeof(paths[i]), "%s", play_path(play, names[i]));
        file_list[i] = (struct tls_file) { .path = paths[i], .at = "conf:1" };
    }
    play_write(play, "a.crt", "a certificate");
    ck_assert_int_eq(symlink("a.crt", paths[LINKED]), 0);
    ck_assert_int_eq(mkfifo(paths[FIFO], 0600), 0);
    play_configure(play, workers, "", "");
    case_serve(play);
    return play;
}

static struct play *start(unsigned workers)
{
    return start_with(workers, &profiles);
}

/* Whether two ends are connected, by a byte in each direction. */
static bool is_connected(int a, int b)
{
    char byte;

    return a != -1 && b != -1 && send(a, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 &&
           recv(b, &byte, 1, MSG_DONTWAIT) == 1 &&
           send(b, "y", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 &&
           recv(a, &byte, 1, MSG_DONTWAIT) == 1;
}

static bool has_ended(const struct play *play, pid_t pid)
{
    const struct play_process *process = play_find(play, pid);

    return process == NULL || process->exited;
}

/* Either of two workers has its keeper. */
static void expect_links(const struct play *play)
{
    for (unsigned i = 0; i < 2; i++)
        ck_assert(
            is_connected(play_worker_find(play, i)->link, play_worker_find(play, 2 + i)->link));
}

START_TEST(each_worker_has_a_keeper)
{
    struct play *play = start(2);

    ck_assert_uint_eq(play_count_workers(play), 4);
    expect_links(play);
    ck_assert_str_eq(case_status(play, "generations.0.workers.1.state"), "accepting");
    ck_assert_str_eq(case_status(play, "generations.0.workers.2.state"), "");
    ck_assert_str_eq(case_status(play, "generations.0.keepers.0.state"), "shaking hands");
    ck_assert_str_eq(case_status(play, "generations.0.keepers.1.state"), "shaking hands");
    ck_assert_str_eq(case_status(play, "generations.0.keepers.2.state"), "");
    ck_assert_uint_eq(play_worker_find(play, 2)->listener_n, 0);
    ck_assert_str_eq(case_status(play, "generations.0.resolver.state"), "");
    ck_assert(play_has_logged(play, "start keeper process"));
    ck_assert(case_is_served(play));
    play_destroy(play);
}
END_TEST

START_TEST(without_profiles_there_is_none)
{
    struct play *play = case_start(2, "", "");

    ck_assert_uint_eq(play_count_workers(play), 2);
    ck_assert_int_eq(play_worker_find(play, 0)->link, -1);
    play_destroy(play);
}
END_TEST

START_TEST(the_dead_are_replaced_and_connected)
{
    struct play *play = start(2);
    unsigned descriptors = play_count_descriptors(play_main(play));
    char line[64];

    for (unsigned i = 0; i < 100; i++) {
        struct play_worker *worker = play_worker_find(play, i % 4);
        pid_t pid = worker->process->pid;

        play_worker_crash(worker, SIGKILL);
        ck_assert_uint_eq(case_pass_to_fork(play), CASE_AT_ONCE_MS);
        play_settle(play);
        ck_assert_int_ne(play_worker_find(play, i % 4)->process->pid, pid);
        snprintf(line, sizeof(line), "keeper process %d exited on signal 9\n", (int)pid);
        ck_assert(play_has_logged(play, line) == (i % 4 >= 2)); /* a keeper has no callbacks */
        expect_links(play);
    }
    ck_assert_uint_eq(play_count_workers(play), 4);
    ck_assert_uint_eq(play_count_descriptors(play_main(play)), descriptors);
    play_destroy(play);
}
END_TEST

START_TEST(a_keepers_crash_is_no_workers)
{
    struct play *play = start(1);

    /* within the probation, and again and again */
    for (unsigned i = 0; i < 3; i++) {
        play_worker_crash(play_worker_find(play, 1), SIGSEGV);
        ck_assert_uint_eq(case_pass_to_fork(play), 100u << i);
        play_settle(play);
        ck_assert(is_connected(play_worker_find(play, 0)->link, play_worker_find(play, 1)->link));
    }
    ck_assert_str_eq(case_status(play, "state"), "running");
    ck_assert_str_eq(case_status(play, "generations.0.state"), "live");
    ck_assert_str_eq(case_status(play, "generations.0.keepers.0.restarts"), "3");
    ck_assert(play_has_logged(play, "a keeper process died at once (3 in a row)"));
    play_destroy(play);
}
END_TEST

START_TEST(a_reload_replaces_keepers)
{
    struct play *play = start(2);
    pid_t old = play_worker_find(play, 3)->process->pid;

    for (unsigned i = 0; i < 5; i++) {
        case_reload(play);
        ck_assert_uint_eq(play_count_workers(play), 4);
        ck_assert(has_ended(play, old));
        expect_links(play);
    }
    play_destroy(play);
}
END_TEST

static void spoil_keeper(struct play *play, struct play_process *process)
{
    (void)play;
    process->worker->fails_start = process->worker->index == 3;
}

START_TEST(a_keeper_that_cannot_start_fails_the_reload)
{
    struct play *play = start(2);
    struct play_client *client;

    play->forked = spoil_keeper;
    client = case_command(play, "reload");
    play_pass(play, 5000);
    case_expect_failure(client, "a worker process could not start");
    play->forked = NULL;
    ck_assert_uint_eq(play_count_workers(play), 4);
    expect_links(play);
    ck_assert_str_eq(case_status(play, "generations.0.state"), "live");
    case_reload(play);
    expect_links(play);
    play_client_close(play, client);
    play_destroy(play);
}
END_TEST

START_TEST(an_upgrade_leaves_none_behind)
{
    struct play *play = start(2);
    struct play_process *old = play_main(play), *new = case_upgrade(play);
    pid_t old_pid = old->pid, new_pid = new->pid;

    ck_assert_uint_eq(play_count_workers(play), 8);
    case_signal(old, SIGQUIT);
    ck_assert(has_ended(play, old_pid));
    ck_assert_uint_eq(play_count_workers(play), 4);
    case_signal(new, SIGQUIT);
    ck_assert(has_ended(play, new_pid));
    for (unsigned i = REGULAR; i < DIRECTORY; i++)
        unlink(paths[i]);
    case_expect_nothing(play);
    play_destroy(play);
}
END_TEST

START_TEST(a_lost_link_is_made_again)
{
    struct play *play = start(2);
    struct play_worker *worker = play_worker_find(play, 1);

    ck_assert_uint_eq(worker->arguments[MESSAGE_LINK], 1);
    for (unsigned i = 1; i < 10; i++) {
        shutdown(worker->link, SHUT_RDWR);
        play_worker_send(worker, MESSAGE_LINK_LOST, i);
        play_settle(play);
        ck_assert_uint_eq(worker->arguments[MESSAGE_LINK], i + 1);
        expect_links(play);
    }
    /* a loss of an earlier one */
    play_worker_send(worker, MESSAGE_LINK_LOST, 3);
    play_settle(play);
    ck_assert_uint_eq(worker->received[MESSAGE_LINK], 10);
    play_destroy(play);
}
END_TEST

START_TEST(files_are_opened_by_index)
{
    static const struct {
        unsigned file;
        int error;
    } cases[] = { { REGULAR, 0 }, { LINKED, 0 }, { MISSING, ENOENT }, { FIFO, EINVAL },
        { DIRECTORY, EISDIR }, { DEVICE, EINVAL } };
    struct play *play = start(1);
    struct play_worker *keeper = play_worker_find(play, 1);
    char text[32] = "";

    play_worker_send(keeper, MESSAGE_FILE_WANTED, cases[_i].file);
    play_settle(play);
    ck_assert_uint_eq(keeper->received[MESSAGE_FILE], 1);
    ck_assert_uint_eq(keeper->arguments[MESSAGE_FILE], (uint32_t)cases[_i].error);
    ck_assert((keeper->file == -1) == (cases[_i].error != 0));
    if (keeper->file != -1) {
        ck_assert_int_eq(read(keeper->file, text, sizeof(text) - 1), 13);
        ck_assert_str_eq(text, "a certificate");
        ck_assert_int_eq(fcntl(keeper->file, F_GETFL) & O_ACCMODE, O_RDONLY);
    }
    play_destroy(play);
}
END_TEST
#define FILE_CASES 6

START_TEST(any_number_of_files_is_no_flood)
{
    struct play *play = start(1);
    struct play_worker *keeper = play_worker_find(play, 1);

    for (unsigned i = 1; i <= 10000; i++) {
        play_worker_send(keeper, MESSAGE_FILE_WANTED, REGULAR);
        play_settle(play);
        ck_assert_uint_eq(keeper->received[MESSAGE_FILE], i);
    }
    play_destroy(play);
}
END_TEST

START_TEST(a_broken_rule_kills)
{
    static const struct {
        unsigned worker;
        uint32_t kind, argument;
        const char *rule;
    } cases[] = {
        { 1, MESSAGE_FILE_WANTED, FILES, "an argument out of range" },
        { 1, MESSAGE_FILE_WANTED, UINT32_MAX, "an argument out of range" },
        { 0, MESSAGE_FILE_WANTED, 0, "a message of unknown kind" },
        { 1, MESSAGE_LINK_LOST, 1, "a message of unknown kind" },
        { 0, MESSAGE_LINK_LOST, 0, "an argument out of range" },
        { 0, MESSAGE_LINK_LOST, 2, "an argument out of range" },
        { 1, MESSAGE_NAMES, 0, "a message of unknown kind" },
        { 1, MESSAGE_INBOX_WANTED, 5, "a message of unknown kind" },
        { 1, MESSAGE_OTHERS_WANTED, 0, "a message of unknown kind" },
        { 1, MESSAGE_RESCAN, 0, "a message of unknown kind" },
        { 1, MESSAGE_LISTENER_BROKEN, 3, "a message of unknown kind" },
        { 0, MESSAGE_LINK, 0, "a message of unknown kind" },
        { 1, MESSAGE_FILE, 0, "a message of unknown kind" },
        { 1, MESSAGE_REPORT, 5, "a report that was not asked for" },
        { 0, MESSAGE_REPORT, 5, "a message of unknown kind" },
    };
    struct play *play = start(1);
    struct play_worker *worker = play_worker_find(play, cases[_i].worker);

    play_worker_send(worker, cases[_i].kind, cases[_i].argument);
    ck_assert_uint_eq(case_pass_to_exit(worker->process), 0);
    ck_assert_msg(play_has_logged(play, cases[_i].rule), "%s", play_read(play, "error.log"));
    case_expect_deaths(play, "channel_rules", 1);
    play_destroy(play);
}
END_TEST
#define RULE_CASES 15

START_TEST(a_second_request_before_the_reply_kills)
{
    struct play *play = start(1);
    struct play_worker *keeper = play_worker_find(play, 1);

    /* the channel is full: the keeper reads nothing */
    keeper->deaf = true;
    for (unsigned i = 0; i < 2000 && play_worker_find(play, 1) == keeper; i++) {
        play_worker_send(keeper, MESSAGE_FILE_WANTED, MISSING);
        play_settle(play);
    }
    ck_assert(play_has_logged(play, "requests with unread replies"));
    play_destroy(play);
}
END_TEST

/* A keeper that dies, or has nothing to say, costs no later report. */
START_TEST(a_report_may_not_come)
{
    struct play *play = start_with(1, &of_a_pair);

    for (unsigned i = 0; i < 4; i++) {
        struct play_client *client = case_command(play, "certificates"),
                           *other = case_command(play, "certificates");
        struct play_worker *keeper = play_worker_find(play, 1);

        case_expect_waiting(client);
        ck_assert_uint_eq(keeper->received[MESSAGE_REPORT_WANTED], 1 + i % 2);
        if (i % 2 == 0)
            play_worker_send(keeper, MESSAGE_REPORT, 0);
        else
            play_worker_crash(keeper, SIGKILL);
        play_pass(play, 1000);
        case_expect_failure(client, "the keeper process has given no report");
        case_expect_failure(other, "the keeper process has given no report");
        play_client_close(play, client);
        play_client_close(play, other);
    }
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, each_worker_has_a_keeper);
    tcase_add_test(tcase, without_profiles_there_is_none);
    tcase_add_test(tcase, the_dead_are_replaced_and_connected);
    tcase_add_test(tcase, a_keepers_crash_is_no_workers);
    tcase_add_test(tcase, a_reload_replaces_keepers);
    tcase_add_test(tcase, a_keeper_that_cannot_start_fails_the_reload);
    tcase_add_test(tcase, an_upgrade_leaves_none_behind);
    tcase_add_test(tcase, a_lost_link_is_made_again);
    tcase_add_loop_test(tcase, files_are_opened_by_index, 0, FILE_CASES);
    tcase_add_test(tcase, any_number_of_files_is_no_flood);
    tcase_add_loop_test(tcase, a_broken_rule_kills, 0, RULE_CASES);
    tcase_add_test(tcase, a_second_request_before_the_reply_kills);
    tcase_add_test(tcase, a_report_may_not_come);
}

TEST_MAIN("keepers", add_tests)

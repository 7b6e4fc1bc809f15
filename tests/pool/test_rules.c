/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of the channel: a rule-breaking worker is killed at once, and replaced; a correct worker is
 * not. */
#include "plays/case.h"

#include "channel/channel.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* The worker is killed for this rule. */
static void expect_broken(struct play_worker *worker, const char *rule)
{
    struct play *play = worker->process->play;

    ck_assert_uint_eq(case_pass_to_exit(worker->process), 0);
    ck_assert_int_eq(play_exit_code(worker->process), 128 + SIGKILL);
    ck_assert_msg(play_has_logged(play, rule), "%s", play_read(play, "error.log"));
    case_expect_deaths(play, "channel_rules", 1);
    ck_assert_uint_eq(case_pass_to_fork(play), 100);
    ck_assert_str_eq(case_status(play, "generations.0.workers.0.state"), "accepting");
}

/* Messages of an accepting worker; messages without a rule are allowed. */
static const struct {
    uint32_t kind, argument;
    const char *rule;
} messages[] = {
    { MESSAGE_READY, 0, "a message that does not fit its phase" },
    { MESSAGE_ACCEPT, 0, "a message of unknown kind" },
    { MESSAGE_ACCEPTING, 0, "a message that does not fit its phase" },
    { MESSAGE_LOG_FILE, 0, "a message of unknown kind" },
    { MESSAGE_INBOX, 0, "a message of unknown kind" },
    { MESSAGE_SIBLING_GONE, 0, "a message of unknown kind" },
    { MESSAGE_LISTENER, 0, "a message of unknown kind" },
    { MESSAGE_REOPEN, 0, "a message of unknown kind" },
    { MESSAGE_REOPEN + 1, 0, "a message of unknown kind" },
    { UINT32_MAX, 0, "a message of unknown kind" },
    { MESSAGE_RESCAN, 1, "an argument out of range" },
    { MESSAGE_RELEASED, 7, "an argument out of range" },
    { MESSAGE_LOG_BROKEN, 2, "an argument out of range" },
    { MESSAGE_LISTENER_BROKEN, 1u << 31, "an argument out of range" },
    { MESSAGE_INBOX_WANTED, UINT32_MAX, "an argument out of range" },
    { MESSAGE_RESCAN, 0, NULL },
    { MESSAGE_LOG_BROKEN, 0, NULL },
    { MESSAGE_INBOX_LOST, 0, NULL },
    { MESSAGE_MUTEX_DAMAGED, 0, NULL },
    { MESSAGE_LISTENER_BROKEN, 3, NULL },
    { MESSAGE_LISTENER_BROKEN, INT32_MAX, NULL },
    { MESSAGE_OTHERS_WANTED, 0, NULL },
    { MESSAGE_INBOX_WANTED, 12345, NULL },
};

START_TEST(test_message_of_accepting_worker)
{
    struct play *play = case_start(1, "", "");
    struct play_worker *worker = play_worker_find(play, 0);

    play_worker_send(worker, messages[_i].kind, messages[_i].argument);
    if (messages[_i].rule != NULL) {
        expect_broken(worker, messages[_i].rule);
    } else {
        play_pass(play, 1000);
        ck_assert(!worker->process->exited);
        case_expect_deaths(play, "", 0);
    }
    play_destroy(play);
}
END_TEST

/* Messages before MESSAGE_READY: some are allowed to a starting worker. */
static const struct {
    uint32_t kind;
    bool allowed;
} early[] = {
    { MESSAGE_ACCEPTING, false },
    { MESSAGE_RELEASED, false },
    { MESSAGE_RESCAN, false },
    { MESSAGE_MUTEX_DAMAGED, false },
    { MESSAGE_LISTENER_BROKEN, false },
    { MESSAGE_LOG_BROKEN, true },
    { MESSAGE_INBOX_LOST, true },
    { MESSAGE_OTHERS_WANTED, true },
    { MESSAGE_INBOX_WANTED, true },
};

static void never_ready(struct play *play, struct play_process *process)
{
    process->worker->never_ready = true;
    play->forked = NULL;
}

START_TEST(test_message_of_starting_worker)
{
    struct play *play = case_start(1, "", "");
    struct play_worker *worker;

    play->forked = never_ready;
    play_worker_crash(play_worker_find(play, 0), SIGKILL);
    case_pass_to_fork(play);
    worker = play_worker_find(play, 0);
    play_worker_send(worker, early[_i].kind, early[_i].kind == MESSAGE_INBOX_WANTED);
    if (!early[_i].allowed) {
        ck_assert_uint_eq(case_pass_to_exit(worker->process), 0);
        ck_assert_str_eq(case_status(play, "deaths.channel_rules"), "1");
        ck_assert_uint_eq(case_pass_to_fork(play), 100);
    } else {
        play_pass(play, 1000);
        ck_assert(!worker->process->exited);
    }
    play_destroy(play);
}
END_TEST

/* A worker asks for its own inbox, or twice for the workers of a second master process. */
START_TEST(test_senseless_request)
{
    struct play *play = case_start(1, "", "");
    struct play_worker *worker = play_worker_find(play, 0);

    if (_i == 0) {
        play_worker_send(worker, MESSAGE_INBOX_WANTED, slot_incarnation(worker->slot));
        expect_broken(worker, "an argument out of range");
    } else {
        play_worker_send(worker, MESSAGE_OTHERS_WANTED, 0);
        play_worker_send(worker, MESSAGE_OTHERS_WANTED, 0);
        expect_broken(worker, "a second request for the workers of another master process");
    }
    play_destroy(play);
}
END_TEST

/* Packets without a message, and a message of kind 0. */
START_TEST(test_packet_that_is_no_message)
{
    static const size_t lengths[] = { 0, 1, 7, 9, 4096, 8 };
    static const char bytes[4096];
    struct play *play = case_start(1, "", "");
    struct play_worker *worker = play_worker_find(play, 0);

    ck_assert_int_eq(send(worker->channel, bytes, lengths[_i], MSG_NOSIGNAL), (ssize_t)lengths[_i]);
    expect_broken(worker, _i < 5 ? "a message of a wrong length" : "a message of unknown kind");
    play_destroy(play);
}
END_TEST

/* More messages than a worker can have reason for: 4096 at once, and 1000 a second. */
START_TEST(test_too_many_messages)
{
    struct play *play = case_start(1, "", "");
    struct play_worker *worker = play_worker_find(play, 0);

    worker->process->kept = true;
    for (unsigned i = 0; i < 6000 && !worker->process->exited; i++) {
        play_worker_send(worker, MESSAGE_RESCAN, 0);
        play_settle(play);
        if (_i == 1 && i % 1000 == 999)
            play_pass(play, 1000);
    }
    if (_i == 0)
        ck_assert(play_has_logged(play, "more than 1000 messages a second"));
    case_expect_deaths(play, "channel_rules", _i == 0);
    play_destroy(play);
}
END_TEST

/* On probation the death is a crash like any crash. */
START_TEST(test_broken_rule_is_a_crash)
{
    struct play *play = case_start(1, "", "");
    struct play_client *client = case_command(play, "reload");

    play_worker_send(play_worker_find(play, 0), UINT32_MAX, 0);
    play_settle(play);
    case_expect_failure(client, "\"in_force\":\"previous\"");
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(
        tcase, test_message_of_accepting_worker, 0, sizeof(messages) / sizeof(messages[0]));
    tcase_add_loop_test(
        tcase, test_message_of_starting_worker, 0, sizeof(early) / sizeof(early[0]));
    tcase_add_loop_test(tcase, test_senseless_request, 0, 2);
    tcase_add_loop_test(tcase, test_packet_that_is_no_message, 0, 6);
    tcase_add_loop_test(tcase, test_too_many_messages, 0, 2);
    tcase_add_test(tcase, test_broken_rule_is_a_crash);
}

TEST_MAIN("rules", add_tests)

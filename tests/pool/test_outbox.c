/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of the master to workers besides commands without an argument: inboxes, gone
 * incarnations, log files, listening sockets. A worker that does not read keeps nobody waiting, and
 * loses nothing. */
#include "plays/case.h"

#include "channel/channel.h"
#include "os/files.h"
#include "pool/outbox.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define RETRY_MS 100 /* until a full channel is tried again */

static uint32_t incarnation(const struct play_worker *worker)
{
    return slot_incarnation(worker->slot);
}

static void want_inbox(struct play_worker *asker, uint32_t wanted)
{
    play_worker_send(asker, MESSAGE_INBOX_WANTED, wanted);
    play_settle(asker->process->play);
}

/* Two workers that know each other's inboxes. */
static struct play *begin(struct play_worker *workers[2])
{
    struct play *play = case_start(2, "", "");

    for (unsigned i = 0; i < 2; i++)
        workers[i] = play_worker_find(play, i);
    for (unsigned i = 0; i < 2; i++)
        want_inbox(workers[i], incarnation(workers[1 - i]));
    return play;
}

START_TEST(test_inbox_is_given)
{
    struct play_worker *workers[2];
    struct play *play = begin(workers);

    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(workers[i]->received[MESSAGE_INBOX], 1);
        ck_assert_uint_eq(workers[i]->received[MESSAGE_SIBLING_INBOX], 1);
    }
    /* a second request has the same inbox */
    want_inbox(workers[0], incarnation(workers[1]));
    ck_assert_uint_eq(workers[0]->received[MESSAGE_SIBLING_INBOX], 2);
    ck_assert_uint_eq(workers[0]->arguments[MESSAGE_SIBLING_INBOX], incarnation(workers[1]));
    ck_assert_uint_eq(workers[1]->received[MESSAGE_INBOX], 1);
    play_destroy(play);
}
END_TEST

/* The inbox was shut down: whoever asks next has a new one made. */
START_TEST(test_lost_inbox_is_made_again)
{
    struct play_worker *workers[2];
    struct play *play = begin(workers);

    play_worker_send(workers[1], MESSAGE_INBOX_LOST, 0);
    play_settle(play);
    want_inbox(workers[0], incarnation(workers[1]));
    ck_assert_uint_eq(workers[1]->received[MESSAGE_INBOX], 2);
    ck_assert_uint_eq(workers[0]->received[MESSAGE_SIBLING_INBOX], 2);
    play_destroy(play);
}
END_TEST

/* The asker learns that the incarnation has no worker. */
START_TEST(test_unknown_incarnation_has_gone)
{
    struct play *play = case_start(1, "", "");
    struct play_worker *worker = play_worker_find(play, 0);

    want_inbox(worker, incarnation(worker) + (5u << SLOT_BITS));
    ck_assert_uint_eq(worker->received[MESSAGE_SIBLING_GONE], 1);
    ck_assert_uint_eq(
        worker->arguments[MESSAGE_SIBLING_GONE], incarnation(worker) + (5u << SLOT_BITS));
    play_destroy(play);
}
END_TEST

/* Workers learn of the end of a worker after a request for the inbox, and of no other end. */
START_TEST(test_end_of_known_worker_is_told)
{
    struct play_worker *workers[2];
    struct play *play = case_start(3, "", "");
    uint32_t gone;

    for (unsigned i = 0; i < 2; i++)
        workers[i] = play_worker_find(play, i);
    want_inbox(workers[0], gone = incarnation(workers[1]));
    play_worker_crash(play_worker_find(play, 2), SIGSEGV);
    play_pass(play, 500);
    ck_assert_uint_eq(workers[0]->received[MESSAGE_SIBLING_GONE], 0);
    play_worker_crash(workers[1], SIGSEGV);
    play_pass(play, 500);
    ck_assert_uint_eq(workers[0]->received[MESSAGE_SIBLING_GONE], 1);
    want_inbox(workers[0], gone);
    ck_assert_uint_eq(workers[0]->received[MESSAGE_SIBLING_GONE], 2);
    ck_assert_uint_eq(workers[0]->arguments[MESSAGE_SIBLING_GONE], gone);
    play_destroy(play);
}
END_TEST

/* Replacements have incarnations of their own. */
START_TEST(test_replacement_is_another_incarnation)
{
    struct play *play = case_start(1, "", "");
    uint32_t before = incarnation(play_worker_find(play, 0));

    play_worker_crash(play_worker_find(play, 0), SIGKILL);
    case_pass_to_fork(play);
    ck_assert_uint_ne(incarnation(play_worker_find(play, 0)), before);
    play_destroy(play);
}
END_TEST

/* Fills the channel of a deaf worker, from the worker's own end: the master's messages wait. */
static void stop_reading(struct play_worker *worker)
{
    worker->deaf = true;
    for (unsigned i = 0; i < 1000; i++) {
        play_signal(play_main(worker->process->play), SIGUSR1); /* a log file for each worker */
        play_settle(worker->process->play);
    }
}

/* A worker that reads again gets the pending messages, once; the rest got theirs meanwhile. */
START_TEST(test_full_channel_loses_nothing)
{
    struct play *play = case_start(3, "", "");
    struct play_worker *slow = play_worker_find(play, 0), *other = play_worker_find(play, 1);
    unsigned logs;

    want_inbox(other, incarnation(play_worker_find(play, 2)));
    stop_reading(slow);
    ck_assert_uint_eq(other->received[MESSAGE_LOG_FILE], 1000);
    want_inbox(other, incarnation(slow));
    play_worker_send(slow, MESSAGE_INBOX_WANTED, incarnation(other));
    play_worker_crash(play_worker_find(play, 2), SIGSEGV);
    play_pass(play, 1000);
    ck_assert_uint_eq(other->received[MESSAGE_SIBLING_GONE], 1);
    logs = other->received[MESSAGE_LOG_FILE];
    slow->deaf = false;
    play_pass(play, 2 * RETRY_MS);
    ck_assert_uint_eq(slow->received[MESSAGE_SIBLING_GONE], 1);
    ck_assert_uint_eq(slow->received[MESSAGE_INBOX], 1);
    ck_assert_uint_eq(slow->received[MESSAGE_SIBLING_INBOX], 1);
    ck_assert_uint_ge(slow->received[MESSAGE_LOG_FILE], 2);
    ck_assert_uint_lt(slow->received[MESSAGE_LOG_FILE], logs); /* the last is as good as all */
    case_expect_deaths(play, "signal", 1);
    play_destroy(play);
}
END_TEST

/* The last log file passed to the slow worker is the current file of the path. */
START_TEST(test_logs_are_opened_again)
{
    struct play *play = case_start(2, "", "");
    struct play_client *client;
    char *text;

    ck_assert_int_eq(rename(play_path(play, "error.log"), "/dev/null") == 0, 0);
    unlink(play_path(play, "error.log"));
    client = case_command(play, "reopen");
    case_expect_ok(client);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(play_worker_find(play, i)->received[MESSAGE_LOG_FILE], 1);
    play_signal(play_main(play), SIGUSR1);
    play_settle(play);
    text = play_read(play, "error.log");
    ck_assert_str_ne(text, "");
    free(text);
    play_destroy(play);
}
END_TEST

/* Requests beyond a worker's descriptor limit break a rule of the channel. */
START_TEST(test_requests_without_reading)
{
    struct play *play = case_start(2, "", "");
    struct play_worker *slow = play_worker_find(play, 0);
    uint32_t other = incarnation(play_worker_find(play, 1));

    slow->process->kept = true;
    stop_reading(slow);
    for (unsigned i = 0; i < POOL_WANTED_MAX; i++)
        want_inbox(slow, other);
    ck_assert(!slow->process->exited);
    want_inbox(slow, other);
    ck_assert(slow->process->exited);
    ck_assert(play_has_logged(play, "requests with unread replies"));
    case_expect_deaths(play, "channel_rules", 1);
    play_destroy(play);
}
END_TEST

/* A listening socket shut down by a worker is replaced, and all workers get the replacement. */
START_TEST(test_broken_listener_is_replaced)
{
    struct play *play = case_start(2, "", "");
    struct play_worker *worker = play_worker_find(play, 0);
    struct play_client *client;

    ck_assert_int_eq(shutdown(worker->listeners[0], SHUT_RDWR), 0);
    /* the master's descriptor of the listener, as inherited by the worker */
    play_worker_send(worker, MESSAGE_LISTENER_BROKEN, 7);
    play_pass(play, RETRY_MS);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(play_worker_find(play, i)->received[MESSAGE_LISTENER], 1);
    client = play_connect(play);
    ck_assert_ptr_nonnull(client);
    play_settle(play);
    ck_assert(client->replied);
    play_destroy(play);
}
END_TEST

/* Beside the new process of an upgrade the old process replaces only sockets of its own. A shared
 * path may be served by the new process, and stays. */
START_TEST(test_broken_listener_after_an_upgrade)
{
    struct play *play = case_start(1, "", "server { listen unix:$D/other; echo; }");
    struct play_worker *worker = play_worker_find(play, 0);
    bool shared = _i == 1;

    play_configure(play, 1, "", "");
    case_upgrade(play);
    for (int i = 0; i < 2; i++) {
        struct sockaddr_un address;
        socklen_t n = sizeof(address);

        ck_assert_int_eq(getsockname(worker->listeners[i], (struct sockaddr *)&address, &n), 0);
        if (shared == (strstr(address.sun_path, "/socket") != NULL))
            ck_assert_int_eq(shutdown(worker->listeners[i], SHUT_RDWR), 0);
    }
    play_worker_send(worker, MESSAGE_LISTENER_BROKEN, 7);
    play_pass(play, RETRY_MS);
    ck_assert_uint_eq(worker->received[MESSAGE_LISTENER], shared ? 0 : 1);
    play_destroy(play);
}
END_TEST

/* A worker that clears O_NONBLOCK has no other worker wait for a reader. */
START_TEST(test_pipes_of_sessions_have_own_flags)
{
    static struct pool_worker worker = { .pid = 1, .phase = POOL_WORKER_ACCEPTING };
    struct channel_message message = { .fd = -1 };
    int ends[2], pipe[2];

    ck_assert_int_eq(channel_open(ends), 0);
    ck_assert_int_eq(descriptor_pipe(pipe, O_NONBLOCK), 0);
    worker.channel.fd = ends[0];
    for (int i = 0; i < 2; i++) {
        ck_assert(pool_outbox_sessions(&worker, pipe[1]));
        ck_assert_int_eq(channel_receive(ends[1], &message), CHANNEL_DONE);
        ck_assert_uint_eq(message.kind, MESSAGE_SESSIONS);
        ck_assert_int_ne(fcntl(message.fd, F_GETFL) & O_NONBLOCK, 0);
        ck_assert_int_eq(fcntl(message.fd, F_SETFL, 0), 0);
        close(message.fd);
    }
    ck_assert_int_ne(fcntl(pipe[1], F_GETFL) & O_NONBLOCK, 0);
    worker.killed = POOL_KILL_STUCK;
    ck_assert(!pool_outbox_sessions(&worker, pipe[1]));
    close(pipe[0]);
    close(pipe[1]);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_inbox_is_given);
    tcase_add_test(tcase, test_lost_inbox_is_made_again);
    tcase_add_test(tcase, test_unknown_incarnation_has_gone);
    tcase_add_test(tcase, test_end_of_known_worker_is_told);
    tcase_add_test(tcase, test_replacement_is_another_incarnation);
    tcase_add_test(tcase, test_full_channel_loses_nothing);
    tcase_add_test(tcase, test_logs_are_opened_again);
    tcase_add_test(tcase, test_pipes_of_sessions_have_own_flags);
    tcase_add_test(tcase, test_requests_without_reading);
    tcase_add_test(tcase, test_broken_listener_is_replaced);
    tcase_add_loop_test(tcase, test_broken_listener_after_an_upgrade, 0, 2);
}

TEST_MAIN("outbox", add_tests)

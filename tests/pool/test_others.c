/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers of two master processes during an upgrade: they learn of each other, ask for inboxes, and
 * get notices of ends. */
#include "plays/case.h"

#include "channel/channel.h"

#include <signal.h>

static uint32_t incarnation(const struct play_worker *worker)
{
    return slot_incarnation(worker->slot);
}

static void ask(struct play_worker *worker, uint32_t kind, uint32_t argument)
{
    play_worker_send(worker, kind, argument);
    play_pass(worker->process->play, 200);
}

/* Two processes of one worker; the workers of the old and of the new process. */
static struct play *begin(struct play_worker *workers[2])
{
    struct play *play = case_start(1, "", "");

    workers[0] = play_worker_find(play, 0);
    case_upgrade(play);
    workers[1] = play_worker_find(play, 0);
    ck_assert_ptr_ne(workers[0], workers[1]);
    return play;
}

START_TEST(test_workers_are_told)
{
    struct play_worker *workers[2];
    struct play *play = begin(workers);

    ck_assert_uint_ne(incarnation(workers[0]), incarnation(workers[1]));
    for (unsigned i = 0; i < 2; i++) {
        ask(workers[i], MESSAGE_OTHERS_WANTED, 0);
        ck_assert_uint_eq(workers[i]->received[MESSAGE_OTHER], 1);
        ck_assert_uint_eq(workers[i]->arguments[MESSAGE_OTHER], incarnation(workers[1 - i]));
    }
    play_destroy(play);
}
END_TEST

/* Without a second master process nobody replies, and the worker may ask. */
START_TEST(test_there_are_no_others)
{
    struct play *play = case_start(1, "", "");
    struct play_worker *worker = play_worker_find(play, 0);

    ask(worker, MESSAGE_OTHERS_WANTED, 0);
    ck_assert_uint_eq(worker->received[MESSAGE_OTHER], 0);
    ck_assert(!worker->process->exited);
    play_destroy(play);
}
END_TEST

/* Inboxes are passed in either direction. */
START_TEST(test_inbox_of_other)
{
    struct play_worker *workers[2];
    struct play *play = begin(workers);
    struct play_worker *asker = workers[_i], *other = workers[1 - _i];

    ask(asker, MESSAGE_INBOX_WANTED, incarnation(other));
    ck_assert_uint_eq(asker->received[MESSAGE_SIBLING_INBOX], 1);
    ck_assert_uint_eq(other->received[MESSAGE_INBOX], 1);
    /* an incarnation of the slot without a worker */
    ask(asker, MESSAGE_INBOX_WANTED, incarnation(other) + (5u << SLOT_BITS));
    ck_assert_uint_eq(asker->received[MESSAGE_SIBLING_GONE], 1);
    play_destroy(play);
}
END_TEST

/* A worker dies whose inbox was given to the second process's worker. */
START_TEST(test_death_is_told_to_others)
{
    struct play_worker *workers[2];
    struct play *play = begin(workers);
    struct play_worker *asker = workers[_i], *other = workers[1 - _i];
    uint32_t gone = incarnation(other);

    ask(asker, MESSAGE_INBOX_WANTED, gone);
    play_worker_crash(other, SIGSEGV);
    play_settle(play);
    ck_assert_uint_eq(asker->received[MESSAGE_SIBLING_GONE], 1);
    ck_assert_uint_eq(asker->arguments[MESSAGE_SIBLING_GONE], gone);
    play_destroy(play);
}
END_TEST

/* The second master process ends, or is killed: all its workers have gone. */
START_TEST(test_end_of_others_is_told)
{
    struct play_worker *workers[2];
    struct play *play = begin(workers);
    struct play_worker *asker = workers[_i / 2];
    struct play_process *other = workers[1 - _i / 2]->process->parent;

    ask(asker, MESSAGE_OTHERS_WANTED, 0);
    if (_i % 2 == 0)
        play_signal(other, SIGQUIT);
    else
        play_kill(other, SIGKILL);
    play_pass(play, 1000);
    ck_assert_uint_eq(asker->received[MESSAGE_SIBLING_GONE], 1);
    ck_assert_uint_ne(asker->arguments[MESSAGE_SIBLING_GONE] & CHANNEL_OTHERS_GONE, 0);
    ck_assert(!asker->process->exited);
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_workers_are_told);
    tcase_add_test(tcase, test_there_are_no_others);
    tcase_add_loop_test(tcase, test_inbox_of_other, 0, 2);
    tcase_add_loop_test(tcase, test_death_is_told_to_others, 0, 2);
    tcase_add_loop_test(tcase, test_end_of_others_is_told, 0, 4);
}

TEST_MAIN("others", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between workers of the two master processes of an upgrade, and who of them comes and
 * goes: forward, back, and when either is killed. */
#include "daemon/client.h"
#include "daemon/council.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EACH 2 /* workers of each process */
#define BOTH (2 * EACH)

static struct daemon *start_daemon(struct member *members)
{
    struct daemon *daemon = daemon_start_new(1,
        COUNCIL_MODULE("council") "worker_processes 2;\n"
                                  "events { accept_mutex off; }\n"
                                  "stream { server { listen 127.0.0.1:$0; council; } }\n");

    council_open_members(daemon, members, EACH, 0);
    return daemon;
}

/* The second process beside the first: its members follow the members already there. */
static pid_t upgrade(struct daemon *daemon, struct member *members)
{
    pid_t new = upgrade_start(daemon);

    council_open_members(daemon, members, BOTH, EACH);
    return new;
}

static void finish(struct daemon *daemon, struct member *members, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        council_close(&members[i]);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}

/* Everybody sends to everybody. */
static void expect_exchange(const struct member *members, unsigned n)
{
    char line[64];

    for (unsigned i = 0; i < n; i++) {
        council_say(&members[i], "all hello\n");
        for (unsigned k = 0; k < n; k++)
            if (k != i)
                council_expect_got(&members[k], "hello", members[i].id);
        snprintf(line, sizeof(line), "%u handled, 0 declined, 0 unknown, 0 busy", n - 1);
        ck_assert_str_eq(council_read_after(members[i].fd, "all "), line);
    }
}

/* A connection of one worker sends a message to a connection of a second. */
static void expect_told(const struct member *from, const struct member *to)
{
    council_say(to, "ref\n");
    council_say(from, "tell %s it\n", client_read_line(to->fd));
    ck_assert_str_eq(council_read_after(to->fd, "given "), "it");
    ck_assert_str_eq(council_read_after(from->fd, "tell "), "handled");
}

/* Forward, twice: the third process has the slots of the first. */
START_TEST(workers_of_both_exchange_messages)
{
    struct member members[BOTH];
    struct daemon *daemon = start_daemon(members);

    for (unsigned round = 0; round < 2; round++) {
        pid_t new = upgrade(daemon, members);
        uint64_t old = members[0].id;

        expect_exchange(members, BOTH);
        expect_told(&members[0], &members[EACH]);
        expect_told(&members[EACH], &members[0]);
        daemon_signal(daemon, SIGQUIT);
        daemon_wait_log(daemon, "gracefully shutting down");
        expect_exchange(members, BOTH); /* the old ones have sessions yet */
        for (unsigned i = 0; i < EACH; i++) {
            council_close(&members[i]);
            for (unsigned k = EACH; k < BOTH; k++)
                council_expect_gone(&members[k], members[i].id);
        }
        upgrade_wait_complete(daemon, new);
        memmove(members, members + EACH, EACH * sizeof(members[0]));
        for (unsigned i = 0; i < EACH; i++)
            ck_assert_uint_eq(council_known_by(&members[i]), EACH - 1);
        expect_exchange(members, EACH);
        council_say(&members[0], "to %" PRIx64 " x\n", old);
        ck_assert_str_eq(council_read_after(members[0].fd, "to "), "unknown");
    }
    ck_assert_uint_eq(daemon_count_log(daemon, "exchange no messages"), 0);
    finish(daemon, members, EACH);
}
END_TEST

/* Back, and forward again: the second new process has the slots of the first, not its names. */
START_TEST(the_old_ones_are_alone_again)
{
    struct member members[BOTH];
    struct daemon *daemon = start_daemon(members);
    pid_t new = upgrade(daemon, members);
    uint64_t given_up[EACH];

    expect_exchange(members, BOTH);
    ck_assert_int_eq(kill(new, SIGQUIT), 0);
    for (unsigned i = 0; i < EACH; i++) {
        given_up[i] = members[EACH + i].id;
        council_close(&members[EACH + i]);
        for (unsigned k = 0; k < EACH; k++)
            council_expect_gone(&members[k], given_up[i]);
    }
    upgrade_wait_rollback(daemon);
    expect_exchange(members, EACH);
    new = upgrade(daemon, members);
    for (unsigned i = EACH; i < BOTH; i++)
        for (unsigned k = 0; k < EACH; k++)
            ck_assert_uint_ne(members[i].id, given_up[k]);
    expect_exchange(members, BOTH);
    for (unsigned i = 0; i < EACH; i++)
        council_close(&members[i]);
    upgrade_complete(daemon, new);
    finish(daemon, members + EACH, EACH);
}
END_TEST

/* A worker of either process is killed: all workers are told, and know its replacement. */
START_TEST(a_worker_is_killed)
{
    struct member members[BOTH];
    struct daemon *daemon = start_daemon(members);
    pid_t new = upgrade(daemon, members);
    struct member victim = members[_i];

    daemon_expects(daemon, "exited on signal 9");
    daemon_expects(daemon, "died at once");
    proc_freeze(victim.pid);
    memmove(&members[_i], &members[_i + 1], (size_t)(BOTH - 1 - _i) * sizeof(members[0]));
    council_say(&members[0], "all lost\n");
    for (unsigned i = 1; i < BOTH - 1; i++)
        council_expect_got(&members[i], "lost", members[0].id);
    kill(victim.pid, SIGKILL);
    ck_assert_str_eq(
        council_read_after(members[0].fd, "all "), "2 handled, 0 declined, 1 unknown, 0 busy");
    for (unsigned i = 0; i < BOTH - 1; i++)
        council_expect_gone(&members[i], victim.id);
    council_open_members(daemon, members, BOTH, BOTH - 1);
    expect_exchange(members, BOTH);
    council_close(&victim);
    for (unsigned i = 0; i < BOTH; i++)
        council_close(&members[i]);
    upgrade_roll_back(daemon, new);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* A master process is killed: the workers, still with sessions, are gone for the workers of the
 * second master, and the other way round. */
START_TEST(a_master_is_killed)
{
    struct member members[BOTH];
    struct daemon *daemon = start_daemon(members);
    pid_t new = upgrade(daemon, members);

    daemon_expects(daemon, "exited on signal 9");
    daemon_expects(daemon, "the master process has gone");
    ck_assert_int_eq(kill(new, SIGKILL), 0);
    for (unsigned i = 0; i < BOTH; i++)
        WAIT_FOR(council_known_by(&members[i]) == EACH - 1);
    expect_exchange(members, EACH);
    expect_exchange(members + EACH, EACH);
    for (unsigned i = EACH; i < BOTH; i++)
        council_close(&members[i]);
    for (unsigned i = EACH; i < BOTH; i++) /* the next master would report leftover workers */
        WAIT_FOR(proc_state(members[i].pid) == 'Z' || proc_state(members[i].pid) == 0);
    upgrade_wait_rollback(daemon);
    new = upgrade(daemon, members);
    expect_exchange(members, BOTH);
    for (unsigned i = 0; i < BOTH; i++)
        council_close(&members[i]);
    upgrade_roll_back(daemon, new);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* Floods from either process while workers of the opposite process end: no remaining worker misses
 * anything. */
START_TEST(a_flood_goes_on_while_the_old_ones_end)
{
    enum { N = 3000 };
    struct member members[BOTH];
    struct daemon *daemon = start_daemon(members);
    pid_t new = upgrade(daemon, members);

    council_say(&members[0], "flood %d\n", N);
    council_say(&members[EACH], "flood %d\n", N);
    daemon_signal(daemon, SIGQUIT);
    for (unsigned i = 0; i < BOTH; i += EACH)
        ck_assert_str_eq(council_read_after(members[i].fd, "flood ") + strlen("9000"),
            " handled, 0 declined, 0 unknown, 0 busy");
    council_expect_count(&members[1], 2 * N);
    council_expect_count(&members[EACH + 1], 2 * N);
    for (unsigned i = 0; i < EACH; i++)
        council_close(&members[i]);
    upgrade_wait_complete(daemon, new);
    finish(daemon, members + EACH, EACH);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, workers_of_both_exchange_messages);
    tcase_add_test(tcase, the_old_ones_are_alone_again);
    tcase_add_loop_test(tcase, a_worker_is_killed, 0, BOTH);
    tcase_add_test(tcase, a_master_is_killed);
    tcase_add_test(tcase, a_flood_goes_on_while_the_old_ones_end);
}

TEST_MAIN("upgrade_messages", add_tests)

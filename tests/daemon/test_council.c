/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between workers, and workers coming and going. */
#include "daemon/client.h"
#include "daemon/council.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"
#include "daemon/proc.h"

#include "base/compiler.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORKERS 4
#define CONFIGURATION                                                                              \
    COUNCIL_MODULE("council")                                                                      \
    "worker_processes %d;\n"                                                                       \
    "events { accept_mutex off; %s }\n"                                                            \
    "stream { server { listen 127.0.0.1:$0; council; } }\n"

static struct daemon *start_daemon(struct member *members, unsigned n, const char *events)
{
    struct daemon *daemon = daemon_start_new(1, CONFIGURATION, n, events);

    council_open_members(daemon, members, n, 0);
    return daemon;
}

static void finish_daemon(struct daemon *daemon, struct member *members, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        close(members[i].fd);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}

START_TEST(each_worker_reaches_all_others)
{
    struct member members[WORKERS];
    char use[64];
    struct daemon *daemon;
    unsigned numbers = 0;

    snprintf(use, sizeof(use), "use %s;", mechanisms_name(_i));
    daemon = start_daemon(members, WORKERS, use);
    for (unsigned i = 0; i < WORKERS; i++) {
        ck_assert_uint_eq(members[i].count, WORKERS);
        numbers |= 1u << members[i].number;
        council_say(&members[i], "all hello\n");
        for (unsigned k = 0; k < WORKERS; k++)
            if (k != i)
                council_expect_got(&members[k], "hello", members[i].id);
        ck_assert_str_eq(
            council_read_after(members[i].fd, "all "), "3 handled, 0 declined, 0 unknown, 0 busy");
        council_say(&members[i], "all no\n");
        for (unsigned k = 0; k < WORKERS; k++)
            if (k != i)
                council_expect_got(&members[k], "no", members[i].id);
        ck_assert_str_eq(
            council_read_after(members[i].fd, "all "), "0 handled, 3 declined, 0 unknown, 0 busy");
    }
    ck_assert_uint_eq(numbers, (1u << WORKERS) - 1);
    finish_daemon(daemon, members, WORKERS);
}
END_TEST

START_TEST(workers_and_connections_reach_each_other)
{
    struct member members[2];
    struct daemon *daemon = start_daemon(members, 2, "");
    struct member *a = &members[0], *b = &members[1];
    uint64_t ref, own;

    council_say(b, "ref\n");
    ref = strtoull(client_read_line(b->fd), NULL, 16);
    council_say(a, "ref\n");
    own = strtoull(client_read_line(a->fd), NULL, 16);
    council_say(a, "to %" PRIx64 " x\n", b->id);
    council_expect_got(b, "x", a->id);
    ck_assert_str_eq(council_read_after(a->fd, "to "), "handled");
    council_say(a, "to %" PRIx64 " myself\n", a->id);
    council_expect_got(a, "myself", a->id);
    ck_assert_str_eq(council_read_after(a->fd, "to "), "handled");
    council_say(a, "to %" PRIx64 " conn\n", ref);
    ck_assert_str_eq(council_read_after(b->fd, "given "), "conn");
    ck_assert_str_eq(council_read_after(a->fd, "to "), "handled");
    council_say(a, "to %" PRIx64 " no\n", ref);
    ck_assert_str_eq(council_read_after(a->fd, "to "), "declined");
    council_say(a, "tell %" PRIx64 " worker\n", b->id);
    council_expect_got(b, "worker", own);
    ck_assert_str_eq(council_read_after(a->fd, "tell "), "handled");
    council_say(a, "to 0 x\n");
    ck_assert_str_eq(council_read_after(a->fd, "to "), "unknown");
    council_say(a, "to %" PRIx64 " x\n", b->id + 1); /* a later life of its slot */
    ck_assert_str_eq(council_read_after(a->fd, "to "), "unknown");
    council_say(a, "to %" PRIx64 " x\n", b->id ^ UINT64_C(1) << 60);
    ck_assert_str_eq(council_read_after(a->fd, "to "), "unknown");
    finish_daemon(daemon, members, 2);
}
END_TEST

START_TEST(one_that_is_killed_is_gone)
{
    struct member members[WORKERS];
    struct daemon *daemon = start_daemon(members, WORKERS, "");
    struct member old = members[WORKERS - 1];

    daemon_expects(daemon, "exited on signal 9");
    daemon_expects(daemon, "died at once");
    proc_freeze(old.pid);
    council_say(&members[0], "all lost\n");
    for (unsigned i = 1; i < WORKERS - 1; i++)
        council_expect_got(&members[i], "lost", members[0].id);
    kill(old.pid, SIGKILL);
    ck_assert_str_eq(
        council_read_after(members[0].fd, "all "), "2 handled, 0 declined, 1 unknown, 0 busy");
    for (unsigned i = 0; i < WORKERS - 1; i++)
        council_expect_gone(&members[i], old.id);
    council_open_members(daemon, members, WORKERS, WORKERS - 1);
    ck_assert_uint_eq(members[WORKERS - 1].number, old.number);
    council_say(&members[0], "to %" PRIx64 " x\n", old.id);
    ck_assert_str_eq(council_read_after(members[0].fd, "to "), "unknown");
    close(old.fd);
    finish_daemon(daemon, members, WORKERS);
}
END_TEST

/* The last message before a worker's death is heard before the notice of its death. */
START_TEST(the_last_words_are_heard)
{
    struct member members[2];
    struct daemon *daemon = start_daemon(members, 2, "");
    unsigned started = daemon_count_log(daemon, "start worker process");

    daemon_expects(daemon, "exited on signal 9");
    daemon_expects(daemon, "died at once");
    proc_freeze(members[1].pid);
    council_say(&members[0], "all words\nid\n");
    council_read_after(members[0].fd, "id "); /* the message has been sent */
    kill(members[0].pid, SIGKILL);
    WAIT_FOR(daemon_count_log(daemon, "start worker process") > started);
    kill(members[1].pid, SIGCONT);
    ck_assert_str_eq(strtok((char *)client_read_line(members[1].fd), " "), "got");
    ck_assert_uint_eq(
        strtoull(council_read_after(members[1].fd, "gone "), NULL, 16), members[0].id);
    finish_daemon(daemon, members, 2);
}
END_TEST

/* Floods of all to all; of the first while a second worker is stopped, so that the flood is refused
 * and tries again. Nothing is lost, and nothing comes out of order. */
START_TEST(a_flood_keeps_its_order)
{
    enum { N = 6000 };
    struct member members[3];
    struct daemon *daemon = start_daemon(members, 3, "");
    unsigned handled, busy;

    proc_freeze(members[2].pid);
    for (unsigned i = 0; i < 2; i++) {
        council_say(&members[i], "flood %u\n", N);
        council_read_after(members[i].fd, "sent");
    }
    kill(members[2].pid, SIGCONT);
    for (unsigned i = 0; i < 2; i++) {
        const char *line = council_read_after(members[i].fd, "flood ");

        ck_assert_msg(
            sscanf(line, "%u handled, 0 declined, 0 unknown, %u busy", &handled, &busy) == 2, "%s",
            line);
        ck_assert_uint_eq(handled, 2 * N);
        ck_assert_uint_gt(busy, 0);
    }
    council_expect_count(&members[0], N);
    council_expect_count(&members[1], N);
    council_expect_count(&members[2], 2 * N);
    finish_daemon(daemon, members, 3);
}
END_TEST

START_TEST(old_and_new_workers_know_each_other)
{
    struct member members[2], old[2];
    struct daemon *daemon = start_daemon(members, 2, "");

    memcpy(old, members, sizeof(old));
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "gracefully shutting down");
    for (unsigned i = 0; i < 2; i++)
        do
            council_open_port(daemon, &members[i], 0);
        while ((members[i].id == old[0].id || members[i].id == old[1].id ||
                   (i == 1 && members[1].id == members[0].id)) &&
               close(members[i].fd) == 0);
    WAIT_FOR(council_known_by(&members[0]) == 3);
    for (unsigned i = 0; i < 2; i++) /* a worker speaks to the latest client, of the search too */
        WAIT_FOR(council_known_by(&old[i]) == 3);
    council_say(&members[0], "all hello\n");
    for (unsigned i = 0; i < 2; i++)
        council_expect_got(&old[i], "hello", members[0].id);
    ck_assert_str_eq(
        council_read_after(members[0].fd, "all "), "3 handled, 0 declined, 0 unknown, 0 busy");
    council_say(&old[0], "all from the old\n");
    ck_assert_str_eq(
        council_read_after(old[0].fd, "all "), "3 handled, 0 declined, 0 unknown, 0 busy");
    for (unsigned i = 0; i < 2; i++) {
        close(old[i].fd);
        council_expect_gone(&members[0], old[i].id);
    }
    WAIT_FOR(council_known_by(&members[1]) == 1);
    finish_daemon(daemon, members, 2);
}
END_TEST

/* A worker with only its last client runs an older protocol: it was sent the messages of the new
 * worker's first turns, and does not learn of the worker. */
START_TEST(strangers_are_no_receivers)
{
    static const char before[] =
        COUNCIL_MODULE("council_two") "worker_processes 1; events {}\n"
                                      "stream { server { listen 127.0.0.1:$0; council_two; } }\n";
    static const char after[] =
        COUNCIL_MODULE("council_two") COUNCIL_MODULE("council") "worker_processes 1; events {}\n"
                                                                "stream { server { listen "
                                                                "127.0.0.1:$0; council; } }\n";
    struct daemon *daemon = daemon_start_new(1, before);
    struct member old, member;

    council_open_port(daemon, &old, 0);
    daemon_configure(daemon, after);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "gracefully shutting down");
    council_open_port(daemon, &member, 0);
    for (int i = 0; i < 3; i++) {
        council_say(&member, "all hello\n");
        ck_assert_str_eq(
            council_read_after(member.fd, "all "), "0 handled, 0 declined, 0 unknown, 0 busy");
    }
    ck_assert_uint_eq(council_known_by(&member), 0);
    council_say(&old, "who\n");
    ck_assert_str_eq(client_read_line(old.fd), "who 0");
    close(old.fd);
    finish_daemon(daemon, &member, 1);
}
END_TEST

START_TEST(a_reference_is_good_for_its_own_protocol)
{
    struct daemon *daemon = daemon_start_new(3,
        COUNCIL_MODULE("council") COUNCIL_MODULE("council_two")
            COUNCIL_MODULE("council_open") "worker_processes %d; events {}\nstream {\n"
                                           "server { listen 127.0.0.1:$0; council; }\n"
                                           "server { listen 127.0.0.1:$1; council_two; }\n"
                                           "server { listen 127.0.0.1:$2; council_open; } }\n",
        _i);
    static const char *const outcomes[] = { "handled", "unknown", "handled" };
    struct member from, to[3];

    council_open_port(daemon, &from, 0);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t ref;

        council_open_port(daemon, &to[i], i);
        council_say(&to[i], "ref\n");
        ref = strtoull(client_read_line(to[i].fd), NULL, 16);
        council_say(&from, "tell %" PRIx64 " x\n", ref);
        ck_assert_str_eq(council_read_after(from.fd, "tell "), outcomes[i]);
        if (_i > 1)
            continue;
        council_say(&from, "find %" PRIx64 "\n", ref);
        ck_assert_str_eq(
            council_read_after(from.fd, "find "), outcomes[i][0] == 'h' ? "found" : "none");
    }
    /* a worker has a name for all, and is reached by its own protocol alone */
    council_say(&to[1], "to %" PRIx64 " me\n", to[1].id);
    council_expect_got(&to[1], "me", to[1].id);
    for (unsigned i = 0; i < 3; i++)
        close(to[i].fd);
    finish_daemon(daemon, &from, 1);
}
END_TEST

/* Guesses are told of; a connection that goes on is not looked up for any more. */
START_TEST(guesses_are_limited)
{
    struct member members[2];
    struct daemon *daemon = start_daemon(members, 2, "");
    uint64_t ref;

    daemon_expects(daemon, "references were used that were never given out");
    council_say(&members[1], "ref\n");
    ref = strtoull(client_read_line(members[1].fd), NULL, 16);
    council_say(&members[0], "tell %" PRIx64 " x\n", ref);
    ck_assert_str_eq(council_read_after(members[0].fd, "tell "), "handled");
    for (unsigned i = 1; i <= 64; i++) {
        council_say(&members[0], "tell %" PRIx64 " x\n", ref ^ i << 20);
        ck_assert_str_eq(council_read_after(members[0].fd, "tell "), "unknown");
    }
    council_say(&members[0], "tell %" PRIx64 " x\n", ref);
    ck_assert_str_eq(council_read_after(members[0].fd, "tell "), "unknown");
    daemon_wait_log(daemon, "references were used that were never given out, 1 in all");
    finish_daemon(daemon, members, 2);
}
END_TEST

/* A draining worker sends messages queued for a stopped worker. */
START_TEST(a_worker_that_drains_sends_what_waits)
{
    struct member members[2];
    struct daemon *daemon = start_daemon(members, 2, "");

    proc_freeze(members[1].pid);
    council_say(&members[0], "flood 4000\n");
    council_read_after(members[0].fd, "sent");
    close(members[0].fd);
    members[0].fd = -1;
    daemon_signal(daemon, SIGQUIT);
    daemon_wait_log(daemon, "gracefully shutting down");
    kill(members[1].pid, SIGCONT);
    WAIT_FOR(proc_state(members[0].pid) == 0);
    council_expect_count(&members[1], 4000);
    close(members[1].fd);
    daemon_wait(daemon);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, each_worker_reaches_all_others, 0, mechanisms_count());
    tcase_add_test(tcase, workers_and_connections_reach_each_other);
    tcase_add_test(tcase, one_that_is_killed_is_gone);
    tcase_add_test(tcase, the_last_words_are_heard);
    tcase_add_test(tcase, a_flood_keeps_its_order);
    tcase_add_test(tcase, old_and_new_workers_know_each_other);
    tcase_add_test(tcase, strangers_are_no_receivers);
    tcase_add_loop_test(tcase, a_reference_is_good_for_its_own_protocol, 1, 3);
    tcase_add_test(tcase, guesses_are_limited);
    tcase_add_test(tcase, a_worker_that_drains_sends_what_waits);
}

TEST_MAIN("council", add_tests)

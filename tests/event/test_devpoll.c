/* SPDX-License-Identifier: BSD-2-Clause */
/* The mechanism devpoll: contents and time of writes to /dev/poll. */
#include "contract/contract.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/devpoll.h>

#undef write

#define PAIRS 10

/* Written changes: "r3", "w3", "b3" for events of descriptor 3 and "-3" for its removal; a space
 * ends each write. */
static char written[4096];
static int error; /* for the next write; 0: none */

ssize_t devpoll_write(int fd, const void *p, size_t n)
{
    const struct pollfd *changes = p;

    if (error != 0) {
        errno = error;
        return -1;
    }
    for (size_t i = 0; i < n / sizeof(*changes); i++)
        snprintf(written + strlen(written), sizeof(written) - strlen(written), "%s%d",
            changes[i].events == POLLREMOVE                  ? "-"
            : changes[i].events == POLLIN                    ? "r"
            : changes[i].events == POLLOUT                   ? "w"
            : changes[i].events == (short)(POLLIN | POLLOUT) ? "b"
                                                             : "?",
            changes[i].fd);
    strcat(written, " ");
    return devpoll_write_shim(fd, p, n);
}

static void check_written(struct fixture *fixture, const char *expected)
{
    ck_assert_str_eq(written, ""); /* before the wait */
    fixture_turn_waiting(fixture, 0);
    ck_assert_str_eq(written, expected);
    written[0] = '\0';
}

static struct fixture *start_loop(int64_t changes)
{
    struct mechanism_values values = mechanism_defaults(&mechanism_devpoll);

    values.of[0] = changes;
    return contract_start_with(&mechanism_devpoll, values, PAIRS, NULL);
}

static struct watched *watch_pair(struct fixture *fixture, int fds[2])
{
    make_pair(fds);
    return watch_fd(fixture, fds[0]);
}

START_TEST(changes_are_written_together_before_the_wait)
{
    struct fixture *fixture = start_loop(32);
    struct watched *watched[PAIRS];
    int fds[PAIRS][2];
    size_t n = 0;

    for (int i = 0; i < PAIRS; i++) {
        watched[i] = watch_pair(fixture, fds[i]);
        arm_event(watched[i], EVENT_READ);
    }
    ck_assert_str_eq(written, "");
    fixture_turn_waiting(fixture, 0);
    for (size_t i = 0; written[i] != '\0'; i++)
        n += written[i] == 'r';
    ck_assert_uint_eq(n, PAIRS);
    ck_assert_ptr_eq(strchr(written, ' '), written + strlen(written) - 1); /* one write */
    written[0] = '\0';
    check_written(fixture, ""); /* and no more */
    for (int i = 0; i < PAIRS; i++) {
        unwatch(&watched[i]);
        close_end(fds[i][1]);
    }
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_full_list_is_written_at_once)
{
    struct fixture *fixture = start_loop(2);
    struct watched *watched[3];
    int fds[3][2], writes = 0;

    for (int i = 0; i < 3; i++) {
        watched[i] = watch_pair(fixture, fds[i]);
        arm_event(watched[i], EVENT_READ);
    }
    for (size_t i = 0; written[i] != '\0'; i++)
        writes += written[i] == ' ';
    ck_assert_int_eq(writes, 1);
    fixture_turn_waiting(fixture, 0);
    for (int i = 0; i < 3; i++) {
        send_text(fds[i][1], "x");
        watched[i]->receives = true;
    }
    turn_until(fixture,
        watched[0]->received == 1 && watched[1]->received == 1 && watched[2]->received == 1);
    for (int i = 0; i < 3; i++) {
        unwatch(&watched[i]);
        close_end(fds[i][1]);
    }
    fixture_stop(fixture);
}
END_TEST

START_TEST(fewer_events_are_a_removal_and_an_addition)
{
    struct fixture *fixture = start_loop(32);
    int fds[2];
    struct watched *watched = watch_pair(fixture, fds);
    char expected[64];

    arm_event(watched, EVENT_READ);
    snprintf(expected, sizeof(expected), "r%d ", fds[0]);
    check_written(fixture, expected);
    arm_event(watched, EVENT_WRITE); /* more are added */
    snprintf(expected, sizeof(expected), "w%d ", fds[0]);
    check_written(fixture, expected);
    disarm_event(watched, EVENT_READ);
    snprintf(expected, sizeof(expected), "-%dw%d ", fds[0], fds[0]);
    check_written(fixture, expected);
    arm_event(watched, EVENT_READ); /* the direction changes */
    disarm_event(watched, EVENT_WRITE);
    snprintf(expected, sizeof(expected), "-%dr%d ", fds[0], fds[0]);
    check_written(fixture, expected);
    disarm_event(watched, EVENT_READ); /* a pause already over at the wait */
    arm_event(watched, EVENT_READ);
    check_written(fixture, "");
    disarm_event(watched, EVENT_READ);
    snprintf(expected, sizeof(expected), "-%d ", fds[0]);
    check_written(fixture, expected);
    unwatch(&watched);
    check_written(fixture, "");
    close_end(fds[1]);
    fixture_stop(fixture);
}
END_TEST

START_TEST(another_source_of_the_descriptor_begins_anew)
{
    struct fixture *fixture = start_loop(32);
    int fds[2], again[2];
    struct watched *watched = watch_pair(fixture, fds);
    char expected[64];

    arm_event(watched, EVENT_READ);
    fixture_turn_waiting(fixture, 0);
    written[0] = '\0';
    unwatch(&watched);
    close_end(fds[1]);
    watched = watch_pair(fixture, again);
    ck_assert_int_eq(again[0], fds[0]);
    arm_event(watched, EVENT_READ); /* the kernel may still watch the old source's file */
    snprintf(expected, sizeof(expected), "-%dr%d ", again[0], again[0]);
    check_written(fixture, expected);
    unwatch(&watched);
    snprintf(expected, sizeof(expected), "-%d ", again[0]);
    check_written(fixture, expected);

    watched = watch_fd(fixture, again[1]);
    arm_event(watched, EVENT_READ);
    unwatch(&watched); /* the kernel has never seen it */
    check_written(fixture, "");
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_write_that_fails_ends_the_loop)
{
    struct fixture *fixture = start_loop(32);
    int fds[2];
    struct watched *watched = watch_pair(fixture, fds);

    arm_event(watched, EVENT_READ);
    error = EACCES;
    loop_wait(fixture->loop, 1000);
    ck_assert_int_eq(fixture->loop->wait_error, EACCES);
    ck_assert_str_eq(
        fixture_logged(fixture), "t: [alert] /dev/poll: write() failed (13: Permission denied)\n");
    error = 0;
    unwatch(&watched);
    close_end(fds[1]);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, changes_are_written_together_before_the_wait);
    tcase_add_test(tcase, a_full_list_is_written_at_once);
    tcase_add_test(tcase, fewer_events_are_a_removal_and_an_addition);
    tcase_add_test(tcase, another_source_of_the_descriptor_begins_anew);
    tcase_add_test(tcase, a_write_that_fails_ends_the_loop);
}

TEST_MAIN("devpoll", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The mechanism eventport: associations, and the handling of odd results. */
#include "contract/contract.h"

#include <errno.h>
#include <poll.h>
#include <port.h>
#include <string.h>

static unsigned associations, dissociations, sent;
static int refusal; /* the errno of associations; 0: none is refused */

int port_associate(int port, int source, uintptr_t object, int events, void *user)
{
    associations++;
    if (refusal == 0)
        return port_associate_shim(port, source, object, events, user);
    errno = refusal;
    return -1;
}

int port_dissociate(int port, int source, uintptr_t object)
{
    dissociations++;
    return port_dissociate_shim(port, source, object);
}

int port_send(int port, int events, void *user)
{
    sent++;
    return port_send_shim(port, events, user);
}

static enum { PLAIN, LATE, NOTHING, FOREIGN } answer; /* for the next wait */

int port_getn(int port, port_event_t list[], uint_t max, uint_t *nget, const timespec_t *timeout)
{
    int result = 0, kind = (int)answer;

    answer = PLAIN;
    if (kind != NOTHING)
        result = port_getn_shim(port, list, max, nget, timeout);
    if (kind == FOREIGN)
        list[0].portev_source = PORT_SOURCE_MQ;
    if (kind == PLAIN || kind == FOREIGN || result == -1)
        return result;
    errno = ETIME; /* with the events, or with none and the count as it was */
    return -1;
}

static struct watched *start_pair(int fds[2])
{
    struct mechanism_values values = mechanism_defaults(&mechanism_eventport);

    make_pair(fds);
    associations = dissociations = sent = 0;
    return watch_fd(contract_start_with(&mechanism_eventport, values, 4, NULL), fds[0]);
}

/* Watches for input, and receives a byte. */
static void receive_first(struct watched *watched, int peer)
{
    watched->receives = true;
    arm_event(watched, EVENT_READ);
    send_text(peer, "a");
}

static void end_pair(struct watched *watched, const int fds[2])
{
    struct fixture *fixture = watched->fixture;

    unwatch(&watched);
    close_end(fds[1]);
    fixture_stop(fixture);
}

START_TEST(an_association_is_renewed_once_a_report)
{
    int fds[2];
    struct watched *watched = start_pair(fds);
    struct fixture *fixture = watched->fixture;

    watched->receives = true;
    arm_event(watched, EVENT_READ);
    ck_assert_uint_eq(associations, 1);
    for (unsigned i = 0; i < 3; i++)
        fixture_turn_waiting(fixture, 0);
    ck_assert_uint_eq(associations, 1);
    for (unsigned i = 1; i <= 3; i++) {
        send_text(fds[1], "hello");
        turn_until(fixture, watched->received == 5 * i);
        ck_assert_uint_eq(associations, i);
        fixture_turn_waiting(fixture, 0);
        fixture_turn_waiting(fixture, 0);
        ck_assert_uint_eq(associations, i + 1);
    }
    ck_assert_uint_eq(watched->runs[EVENT_READ], 3);
    end_pair(watched, fds);
    ck_assert_uint_eq(dissociations, 0); /* closing does it */
}
END_TEST

START_TEST(a_pause_costs_nothing)
{
    int fds[2];
    struct watched *watched = start_pair(fds);
    struct fixture *fixture = watched->fixture;

    watched->receives = true;
    arm_event(watched, EVENT_READ);
    for (int i = 0; i < 3; i++) { /* without input */
        disarm_event(watched, EVENT_READ);
        fixture_turn_waiting(fixture, 0);
        arm_event(watched, EVENT_READ);
        fixture_turn_waiting(fixture, 0);
    }
    ck_assert_uint_eq(associations, 1);
    disarm_event(watched, EVENT_READ);
    send_text(fds[1], "a");
    for (int i = 0; i < 3; i++) /* with input, which is remembered */
        fixture_turn_waiting(fixture, 0);
    ck_assert_uint_eq(associations, 1);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 0);
    arm_event(watched, EVENT_READ);
    turn_until(fixture, watched->received == 1);
    fixture_turn_waiting(fixture, 0);
    ck_assert_uint_eq(associations, 2);
    end_pair(watched, fds);
}
END_TEST

START_TEST(a_posted_event_needs_no_association)
{
    int fds[2];
    struct watched *watched = start_pair(fds);
    struct loop *loop = watched->fixture->loop;
    struct event *event = &watched->source.events[EVENT_READ];

    send_text(fds[1], "a");
    arm_event(watched, EVENT_READ);
    turn_until(watched->fixture, watched->runs[EVENT_READ] == 1);
    for (int i = 0; i < 3; i++) { /* the owner goes on with it in the next turn */
        loop_post(loop, event, QUEUE_NEXT);
        ck_assert(loop_promote(loop));
        loop_wait(loop, 0);
        loop_run(loop, QUEUE_NORMAL);
        ck_assert_uint_eq(associations, 1);
    }
    watched->receives = true;
    turn_until(watched->fixture, watched->received == 1);
    ck_assert_uint_eq(associations, 2);
    end_pair(watched, fds);
}
END_TEST

START_TEST(a_refused_association_is_tried_again)
{
    int fds[2];
    struct watched *watched = start_pair(fds);
    struct fixture *fixture = watched->fixture;

    receive_first(watched, fds[1]);
    turn_until(fixture, watched->received == 1);
    refusal = EAGAIN;
    fixture_turn_waiting(fixture, -1); /* despite the endless time */
    ck_assert_str_eq(fixture_logged(fixture),
        "t: [alert] port_associate() failed (11: Resource temporarily unavailable)\n");
    ck_assert_uint_eq(watched->runs[EVENT_READ], 2); /* the owner has looked itself */
    ck_assert_int_eq(fixture->loop->wait_error, 0);
    refusal = 0;
    send_text(fds[1], "b");
    turn_until(fixture, watched->received == 2);

    refusal = ENOMEM; /* the owner learns of a first refusal */
    ck_assert_int_eq(source_arm(fixture->loop, &watched->source, EVENT_WRITE), -1);
    ck_assert_int_eq(errno, ENOMEM);
    refusal = 0;
    end_pair(watched, fds);
}
END_TEST

START_TEST(what_comes_with_the_end_of_the_time_is_taken)
{
    int fds[2];
    struct watched *watched = start_pair(fds);
    struct fixture *fixture = watched->fixture;

    receive_first(watched, fds[1]);
    answer = LATE;
    fixture_turn_waiting(fixture, 1000);
    ck_assert_uint_eq(watched->received, 1);
    answer = NOTHING; /* with a count of 1, as asked for */
    fixture_turn_waiting(fixture, 1000);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 1);
    ck_assert_str_eq(fixture_logged(fixture), "");
    end_pair(watched, fds);
}
END_TEST

START_TEST(a_foreign_event_is_an_alert)
{
    int fds[2];
    struct watched *watched = start_pair(fds);

    send_text(fds[1], "a");
    arm_event(watched, EVENT_READ);
    answer = FOREIGN;
    fixture_turn_waiting(watched->fixture, 1000);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 0);
    ck_assert_str_eq(
        fixture_logged(watched->fixture), "t: [alert] port_getn() told an event of source 6\n");
    end_pair(watched, fds);
}
END_TEST

static unsigned notices;

static void count_notice(struct loop *loop)
{
    (void)loop;
    notices++;
}

START_TEST(notices_of_a_turn_are_one_event)
{
    int fds[2];
    struct watched *watched = start_pair(fds);
    struct fixture *fixture = watched->fixture;
    struct loop *loop = fixture->loop;

    ck_assert_int_eq(loop_set_notified(loop, count_notice), 0);
    for (unsigned i = 1; i <= 3; i++) {
        for (int k = 0; k < 100; k++)
            ck_assert_int_eq(loop->mechanism->notify(loop), 0);
        ck_assert_uint_eq(sent, i);
        fixture_turn_waiting(fixture, -1);
        ck_assert_uint_eq(notices, i);
    }
    check_quiet(fixture);
    end_pair(watched, fds);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, an_association_is_renewed_once_a_report);
    tcase_add_test(tcase, a_pause_costs_nothing);
    tcase_add_test(tcase, a_posted_event_needs_no_association);
    tcase_add_test(tcase, a_refused_association_is_tried_again);
    tcase_add_test(tcase, what_comes_with_the_end_of_the_time_is_taken);
    tcase_add_test(tcase, a_foreign_event_is_an_alert);
    tcase_add_test(tcase, notices_of_a_turn_are_one_event);
}

TEST_MAIN("eventport", add_tests)

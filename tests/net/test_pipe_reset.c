/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a pipe's `a` when the peer of `b` resets: bytes that our system had received reach its
 * peer, by copies and past the program. */
#include "support/owner.h"

#include <errno.h>

/* How much the kernel's queue of `a` takes. */
#define QUEUE 100000
/* Bytes that go past the program at the end, if any do. */
#define MUCH (512 * 1024)

/* A loop test's number: events, copied or spliced, and how `a` ends. */
#define KINDS (2 * 2 * FIXTURE_EVENTS)

struct two {
    struct fixture *fixture;
    struct owner *a, *b;
    size_t said; /* by b */
    bool splices;
    bool resets; /* `a` is to be reset */
};

/* Keeps what the access log would say. */
static void keep_sent(struct owner *owner)
{
    owner->n = owner->conn->sent;
}

static void say_pattern(struct two *two, size_t n)
{
    uint8_t *bytes = malloc(n);

    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)((two->said + i) % 251);
    sim_say(two->b->socket, bytes, n);
    two->said += n;
    free(bytes);
}

/* The kernel's queue of `a` is empty at first; its peer takes nothing by itself. */
static struct two open_piped(int i)
{
    struct two two = { .fixture = fixture_start_net(i % FIXTURE_EVENTS, 4) };
    struct conn_pipe_options options = { .b_break_ends = i / FIXTURE_EVENTS / 2 == 0 };

    two.splices = i / FIXTURE_EVENTS % 2 == 1;
    two.resets = !options.b_break_ends;
    if (two.splices)
        sim_splice(two.fixture->sim);
    two.a = owner_open(two.fixture);
    two.b = owner_open(two.fixture);
    two.a->closed = keep_sent;
    ck_assert_int_eq(conn_pipe(two.a->conn, two.b->conn, &options), 0);
    fixture_settle(two.fixture);
    if (two.splices)
        say_pattern(&two, MUCH);
    fixture_run(two.fixture);
    two.a->socket->queues = true;
    sim_set_room(two.a->socket, QUEUE);
    return two;
}

/* The peer of `a` has read so many bytes of the kernel's queue. */
static void take(struct two *two, size_t most)
{
    size_t n = two->a->socket->queued < most ? two->a->socket->queued : most;

    sim_take(two->a->socket, n);
    if (two->a->socket->closed)
        return;
    sim_set_room(two->a->socket, two->a->socket->room + n);
    fixture_pass(two->fixture, 1);
}

static void take_all(struct two *two)
{
    for (int i = 0; i < 1000 && (two->a->closings == 0 || two->a->socket->queued > 0); i++)
        take(two, 10000);
}

static void end_pair(struct two *two)
{
    fixture_end_all(two->fixture);
    fixture_logged(two->fixture);
    owner_free(&two->a);
    owner_free(&two->b);
    fixture_stop(two->fixture);
}

static void check_delivered(struct two *two)
{
    ck_assert_int_eq(two->b->socket->splices > 0, two->splices);
    ck_assert_uint_eq(two->b->closings, 1);
    ck_assert_int_eq(two->b->reason, FB_RESET);
    ck_assert_uint_eq(two->a->closings, 1);
    ck_assert_uint_eq(two->a->socket->sent_n, two->said);
    owner_check_pattern(two->a, two->said);
    ck_assert_uint_eq(two->a->n, two->said);
    ck_assert_int_eq(two->a->reason, two->resets ? FB_PIPE_BROKEN : FB_FINISHED);
    ck_assert_int_eq(two->a->socket->reset, two->resets);
}

START_TEST(a_slow_peer_gets_what_came_before)
{
    struct two two = open_piped(_i);

    say_pattern(&two, 3 * QUEUE);
    sim_reset(two.b->socket, ECONNRESET);
    fixture_run(two.fixture);
    take_all(&two);
    check_delivered(&two);
    end_pair(&two);
}
END_TEST

START_TEST(a_peer_gets_what_lies_in_the_queue_alone)
{
    struct two two = open_piped(_i);

    say_pattern(&two, QUEUE / 2); /* sent before the reset is heard of */
    fixture_run(two.fixture);
    ck_assert_uint_eq(two.a->socket->queued, QUEUE / 2);
    sim_reset(two.b->socket, ECONNRESET);
    fixture_run(two.fixture);
    take_all(&two);
    check_delivered(&two);
    end_pair(&two);
}
END_TEST

START_TEST(sending_finds_the_reset_first)
{
    struct two two = open_piped(_i);

    say_pattern(&two, 4 * QUEUE);
    fixture_run(two.fixture);
    ck_assert_uint_gt(sim_unread(two.b->socket), QUEUE); /* `b` is not read now */
    sim_reset(two.b->socket, ECONNRESET);
    sim_says(two.a->socket, "goes nowhere");
    fixture_run(two.fixture);
    take_all(&two);
    check_delivered(&two);
    end_pair(&two);
}
END_TEST

START_TEST(a_queue_that_does_not_empty_is_waited_for_a_while)
{
    struct two two = open_piped(_i);
    size_t before = two.a->socket->sent_n;

    say_pattern(&two, QUEUE);
    fixture_run(two.fixture);
    sim_reset(two.b->socket, ECONNRESET);
    fixture_run(two.fixture);
    take(&two, 1000);
    ck_assert_int_eq(two.a->closings, !two.resets);
    if (two.resets) {
        fixture_pass(two.fixture, FIXTURE_LINGERING_MS - 100);
        ck_assert_uint_eq(two.a->closings, 0);
        fixture_pass(two.fixture, 200);
        ck_assert_uint_eq(two.a->closings, 1);
        ck_assert_uint_eq(two.a->socket->sent_n, before + 1000);
    }
    ck_assert_uint_eq(two.a->n, two.a->socket->sent_n); /* no byte that was taken back */
    ck_assert_int_eq(two.a->socket->reset, two.resets);
    end_pair(&two);
}
END_TEST

START_TEST(the_peer_is_gone_while_its_queue_is_waited_for)
{
    struct two two = open_piped(_i);
    size_t before = two.a->socket->sent_n;

    say_pattern(&two, QUEUE);
    fixture_run(two.fixture);
    sim_take(two.a->socket, 1000);
    sim_reset(two.a->socket, ECONNRESET);
    fixture_run(two.fixture);
    ck_assert_uint_eq(two.a->closings, 1);
    ck_assert_int_eq(two.a->reason, FB_RESET);
    ck_assert_uint_eq(two.a->socket->sent_n, before + 1000);
    ck_assert_uint_eq(two.a->n, before + 1000);
    ck_assert_uint_eq(two.b->closings, 1);
    ck_assert(two.b->socket->reset);
    end_pair(&two);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_slow_peer_gets_what_came_before, 0, KINDS);
    tcase_add_loop_test(tcase, a_peer_gets_what_lies_in_the_queue_alone, 0, KINDS);
    tcase_add_loop_test(tcase, sending_finds_the_reset_first, 0, KINDS);
    tcase_add_loop_test(tcase, a_queue_that_does_not_empty_is_waited_for_a_while, 0, KINDS);
    tcase_add_loop_test(tcase, the_peer_is_gone_while_its_queue_is_waited_for, 0, KINDS);
}

TEST_MAIN("pipe_reset", add_tests)

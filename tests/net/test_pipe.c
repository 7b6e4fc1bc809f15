/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connections piped together, whose bytes are copied: simulated sockets have no splice(). */
#include "support/owner.h"

#include <errno.h>
#include <string.h>

struct two {
    struct fixture *fixture;
    struct owner *a, *b;
};

static void settle_both(struct fixture *fixture)
{
    fixture_settle(fixture);
    fixture_run(fixture);
}

static struct two open_two(int i)
{
    struct two two = { .fixture = fixture_start_net(i % FIXTURE_EVENTS, 4) };

    two.a = owner_open(two.fixture);
    two.b = owner_open(two.fixture);
    return two;
}

static struct two open_piped(int i, uint64_t timeout)
{
    struct two two = open_two(i);

    ck_assert_int_eq(owner_pipe(two.a, two.b, timeout), 0);
    settle_both(two.fixture);
    return two;
}

static void check_ends(struct two *two, fb_reason a, fb_reason b)
{
    ck_assert_uint_eq(two->a->closings, 1);
    ck_assert_uint_eq(two->b->closings, 1);
    ck_assert_int_eq(two->a->reason, a);
    ck_assert_int_eq(two->b->reason, b);
}

static void end_pair(struct two *two)
{
    fixture_end_all(two->fixture);
    /* once they are piped, only `closed` is called */
    ck_assert_uint_eq(two->a->eofs + two->a->writables + two->a->expirations, 0);
    ck_assert_uint_eq(two->b->eofs + two->b->writables + two->b->expirations, 0);
    owner_free(&two->a);
    owner_free(&two->b);
    fixture_stop(two->fixture);
}

START_TEST(bytes_go_both_ways)
{
    struct two two = open_piped(_i, 0);

    sim_says(two.a->socket, "from a, ");
    sim_says(two.b->socket, "from b, ");
    fixture_run(two.fixture);
    ck_assert_str_eq(owner_sent(two.b), "from a, ");
    ck_assert_str_eq(owner_sent(two.a), "from b, ");
    sim_says(two.a->socket, "more");
    fixture_run(two.fixture);
    ck_assert_str_eq(owner_sent(two.b), "from a, more");
    ck_assert_uint_eq(two.a->datas + two.b->datas, 0);
    ck_assert_uint_eq(two.a->conn->received, 12);
    ck_assert_uint_eq(two.b->conn->sent, 12);
    end_pair(&two);
}
END_TEST

static uint8_t pattern(size_t at)
{
    return (uint8_t)(at % 251);
}

static void say_pattern(struct owner *owner, size_t from, size_t n)
{
    uint8_t *bytes = malloc(n);

    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = pattern(from + i);
    sim_say(owner->socket, bytes, n);
    free(bytes);
}

START_TEST(a_slow_reader_is_waited_for)
{
    struct two two = open_piped(_i, 0);
    const size_t total = 3000000;

    sim_set_room(two.b->socket, 0);
    say_pattern(two.a, 0, total);
    fixture_run(two.fixture);
    ck_assert_uint_gt(sim_unread(two.a->socket), total - 100000); /* stays in the kernel */
    ck_assert_uint_le(fixture_blocks_held(two.fixture), 4);

    /* the other direction goes on */
    say_pattern(two.b, 0, 100000);
    fixture_run(two.fixture);
    owner_check_pattern(two.a, 100000);
    while (two.b->socket->sent_n < total) {
        size_t before = two.b->socket->sent_n;

        sim_set_room(two.b->socket, 33333);
        fixture_run(two.fixture);
        ck_assert_uint_gt(two.b->socket->sent_n, before);
    }
    owner_check_pattern(two.b, total);
    end_pair(&two);
}
END_TEST

START_TEST(both_readers_are_slow)
{
    struct two two = open_piped(_i, 0);

    sim_set_room(two.a->socket, 0);
    sim_set_room(two.b->socket, 0);
    say_pattern(two.a, 0, 200000);
    say_pattern(two.b, 0, 200000);
    fixture_run(two.fixture);
    for (int i = 0; i < 200; i++) {
        sim_set_room(two.a->socket, 1000);
        sim_set_room(two.b->socket, 1000);
        fixture_run(two.fixture);
    }
    owner_check_pattern(two.a, 200000);
    owner_check_pattern(two.b, 200000);
    end_pair(&two);
}
END_TEST

START_TEST(nothing_is_held_while_nothing_moves)
{
    struct two two = open_piped(_i, 0);

    ck_assert_uint_eq(fixture_blocks_held(two.fixture), 1); /* the pipe itself */
    sim_set_room(two.b->socket, 10);
    say_pattern(two.a, 0, 100000);
    fixture_run(two.fixture);
    ck_assert_uint_gt(fixture_blocks_held(two.fixture), 1);
    sim_set_room(two.b->socket, SIZE_MAX);
    fixture_run(two.fixture);
    owner_check_pattern(two.b, 100000);
    ck_assert_uint_eq(fixture_blocks_held(two.fixture), 1);
    end_pair(&two);
}
END_TEST

START_TEST(halves_end_one_by_one)
{
    struct two two = open_piped(_i, 0);

    sim_says(two.a->socket, "request");
    sim_end(two.a->socket);
    fixture_run(two.fixture);
    ck_assert_str_eq(owner_sent(two.b), "request");
    ck_assert(two.b->socket->shut && !two.a->socket->shut);
    sim_says(two.b->socket, "reply");
    fixture_run(two.fixture);
    ck_assert_str_eq(owner_sent(two.a), "reply");
    ck_assert_uint_eq(two.a->closings + two.b->closings, 0);
    sim_end(two.b->socket);
    fixture_run(two.fixture);
    ck_assert(two.a->socket->closed);
    check_ends(&two, FB_FINISHED, FB_FINISHED);
    ck_assert(!two.a->socket->reset && !two.b->socket->reset);
    end_pair(&two);
}
END_TEST

START_TEST(both_halves_end_at_once)
{
    struct two two = open_piped(_i, 0);

    sim_says(two.a->socket, "to b");
    sim_end(two.a->socket);
    sim_says(two.b->socket, "to a");
    sim_end(two.b->socket);
    fixture_run(two.fixture);
    ck_assert_str_eq(owner_sent(two.b), "to b");
    ck_assert_str_eq(owner_sent(two.a), "to a");
    check_ends(&two, FB_FINISHED, FB_FINISHED);
    end_pair(&two);
}
END_TEST

START_TEST(an_end_waits_for_what_came_before_it)
{
    struct two two = open_piped(_i, 0);

    sim_set_room(two.b->socket, 0);
    say_pattern(two.a, 0, 200000);
    sim_end(two.a->socket);
    sim_end(two.b->socket);
    fixture_run(two.fixture);
    ck_assert(two.a->socket->shut && !two.b->socket->shut && !two.b->socket->closed);
    ck_assert_uint_eq(two.a->closings, 0);
    sim_set_room(two.b->socket, 199999);
    fixture_run(two.fixture);
    ck_assert(!two.b->socket->shut && !two.b->socket->closed);
    sim_set_room(two.b->socket, SIZE_MAX);
    fixture_run(two.fixture);
    owner_check_pattern(two.b, 200000);
    ck_assert(two.b->socket->closed && !two.b->socket->reset);
    check_ends(&two, FB_FINISHED, FB_FINISHED);
    end_pair(&two);
}
END_TEST

START_TEST(unconsumed_input_comes_first)
{
    struct two two = open_two(_i);

    two.a->data = owner_leave_input;
    two.b->data = owner_leave_input;
    sim_says(two.a->socket, "from a, ");
    sim_says(two.b->socket, "from b, ");
    fixture_run(two.fixture);
    conn_stop(two.b->conn);
    owner_pipe(two.a, two.b, 0);
    settle_both(two.fixture);
    ck_assert_str_eq(owner_sent(two.b), "from a, ");
    ck_assert_str_eq(owner_sent(two.a), "from b, ");
    sim_says(two.a->socket, "more");
    fixture_run(two.fixture);
    ck_assert_str_eq(owner_sent(two.b), "from a, more");
    end_pair(&two);
}
END_TEST

static size_t join_behind_a_line(struct owner *owner, fb_bytes in)
{
    conn_write(owner->other->conn, "header ", 7);
    owner_pipe(owner, owner->other, 0);
    return in.n < 5 ? in.n : 5;
}

START_TEST(piped_in_the_middle_of_its_input)
{
    struct two two = open_two(_i);

    two.a->data = join_behind_a_line;
    two.a->other = two.b;
    sim_says(two.a->socket, "line\nrest");
    sim_says(two.a->socket, " and more");
    fixture_run(two.fixture);
    ck_assert_str_eq(owner_sent(two.b), "header rest and more");
    ck_assert_uint_eq(two.a->datas, 1);
    end_pair(&two);
}
END_TEST

START_TEST(one_had_ended_its_half_before)
{
    struct two two = open_two(_i);

    two.a->eof = owner_ignore_eof;
    sim_end(two.a->socket);
    fixture_run(two.fixture);
    two.a->eofs = 0;
    owner_pipe(two.a, two.b, 0);
    settle_both(two.fixture);
    ck_assert(two.b->socket->shut);
    sim_says(two.b->socket, "reply");
    sim_end(two.b->socket);
    fixture_run(two.fixture);
    ck_assert_str_eq(owner_sent(two.a), "reply");
    check_ends(&two, FB_FINISHED, FB_FINISHED);
    end_pair(&two);
}
END_TEST

START_TEST(a_flood_before_the_pipe)
{
    struct two two = open_two(_i);

    sim_set_room(two.b->socket, 0);
    owner_write_pattern(two.b, 100000);
    settle_both(two.fixture);
    owner_pipe(two.a, two.b, 0);
    sim_says(two.b->socket, "heard"); /* although it had been held back */
    settle_both(two.fixture);
    ck_assert_str_eq(owner_sent(two.a), "heard");
    say_pattern(two.a, 100000, 50000);
    settle_both(two.fixture);
    sim_set_room(two.b->socket, SIZE_MAX);
    fixture_run(two.fixture);
    owner_check_pattern(two.b, 150000);
    end_pair(&two);
}
END_TEST

START_TEST(a_broken_one_resets_the_other)
{
    struct two two = open_piped(_i, 0);
    bool output = _i / FIXTURE_EVENTS;

    sim_set_room(two.b->socket, 1);
    sim_says(two.a->socket, "lost");
    fixture_run(two.fixture);
    if (output)
        sim_reset(two.b->socket, ECONNRESET);
    else
        sim_break(two.b->socket, ECONNRESET);
    fixture_run(two.fixture);
    check_ends(&two, FB_PIPE_BROKEN, FB_RESET);
    ck_assert(two.a->socket->reset);
    fixture_logged(two.fixture);
    end_pair(&two);
}
END_TEST

static void close_a(struct two *two)
{
    conn_close(two->a->conn);
}

static void abort_a(struct two *two)
{
    conn_fail(two->a->conn, FB_ABORTED);
}

static void time_a_out(struct two *two)
{
    conn_fail(two->a->conn, FB_TIMED_OUT);
}

static void close_both(struct two *two)
{
    conn_close(two->b->conn);
    conn_close(two->a->conn);
}

static const struct {
    void (*end)(struct two *two);
    fb_reason a, b;
    bool resets, delivers;
} ends[] = {
    { close_a, FB_FINISHED, FB_FINISHED, false, true },
    { abort_a, FB_ABORTED, FB_ABORTED, true, false },
    { time_a_out, FB_TIMED_OUT, FB_TIMED_OUT, false, false },
    { close_both, FB_FINISHED, FB_FINISHED, false, true },
};

START_TEST(an_owner_ends_one)
{
    struct two two = open_piped(_i, 0);
    size_t way = (size_t)_i / FIXTURE_EVENTS;

    sim_set_room(two.a->socket, 0);
    sim_set_room(two.b->socket, 0);
    sim_says(two.a->socket, "to b");
    sim_says(two.b->socket, "to a");
    fixture_run(two.fixture);
    ends[way].end(&two);
    settle_both(two.fixture);
    sim_set_room(two.a->socket, SIZE_MAX);
    fixture_run(two.fixture);
    sim_set_room(two.b->socket, SIZE_MAX);
    fixture_run(two.fixture);
    check_ends(&two, ends[way].a, ends[way].b);
    ck_assert(two.b->socket->reset == ends[way].resets);
    ck_assert_str_eq(owner_sent(two.a), ends[way].delivers ? "to a" : "");
    ck_assert_str_eq(owner_sent(two.b), ends[way].delivers ? "to b" : "");
    end_pair(&two);
}
END_TEST

START_TEST(all_end_with_the_worker)
{
    struct two two = open_piped(_i, 1000);

    sim_set_room(two.b->socket, 0);
    say_pattern(two.a, 0, 100000);
    fixture_run(two.fixture);
    fixture_end_all(two.fixture);
    check_ends(&two, FB_DRAINED, FB_DRAINED);
    end_pair(&two);
}
END_TEST

START_TEST(without_memory_nothing_changes)
{
    struct two two = open_two(_i);

    two.fixture->memory.until_failure = 0;
    ck_assert_int_eq(owner_pipe(two.a, two.b, 0), -1);
    two.fixture->memory.until_failure = UINT32_MAX;
    sim_says(two.a->socket, "as ever");
    settle_both(two.fixture);
    ck_assert_str_eq(two.a->last, "as ever");
    end_pair(&two);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const int n = FIXTURE_EVENTS;

    tcase_add_loop_test(tcase, bytes_go_both_ways, 0, n);
    tcase_add_loop_test(tcase, a_slow_reader_is_waited_for, 0, n);
    tcase_add_loop_test(tcase, both_readers_are_slow, 0, n);
    tcase_add_loop_test(tcase, nothing_is_held_while_nothing_moves, 0, n);
    tcase_add_loop_test(tcase, halves_end_one_by_one, 0, n);
    tcase_add_loop_test(tcase, both_halves_end_at_once, 0, n);
    tcase_add_loop_test(tcase, an_end_waits_for_what_came_before_it, 0, n);
    tcase_add_loop_test(tcase, unconsumed_input_comes_first, 0, n);
    tcase_add_loop_test(tcase, piped_in_the_middle_of_its_input, 0, n);
    tcase_add_loop_test(tcase, one_had_ended_its_half_before, 0, n);
    tcase_add_loop_test(tcase, a_flood_before_the_pipe, 0, n);
    tcase_add_loop_test(tcase, a_broken_one_resets_the_other, 0, 2 * n);
    tcase_add_loop_test(tcase, an_owner_ends_one, 0, n * (int)countof(ends));
    tcase_add_loop_test(tcase, all_end_with_the_worker, 0, n);
    tcase_add_loop_test(tcase, without_memory_nothing_changes, 0, n);
}

TEST_MAIN("pipe", add_tests)

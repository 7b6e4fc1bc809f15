/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes of connections with and without TLS: bytes arrive in both directions, at slow readers, and
 * at a rate; and the ends arrive. */
#include "tls/sealing.h"

#include <errno.h>
#include <string.h>

/* Ends with TLS: bits of the ends' numbers, never none. A loop test's number has the events,
 * too. */
#define KINDS (3 * FIXTURE_EVENTS)

struct end {
    struct owner *owner;
    struct sealing peer;
    bool layered;
    size_t said;
};

struct two {
    struct fixture *fixture;
    struct end ends[2];
};

static void open_end(struct end *end, struct fixture *fixture, bool layered)
{
    *end = (struct end) { .owner = owner_open(fixture), .layered = layered };
    if (layered)
        sealing_begin(&end->peer, end->owner);
    fixture_run(fixture);
}

static void open_two(struct two *two, int kind, const struct conn_pipe_options *options)
{
    two->fixture = sealing_start(kind % FIXTURE_EVENTS, 2);
    sim_splice(two->fixture->sim);
    for (int i = 0; i < 2; i++)
        open_end(&two->ends[i], two->fixture, (kind / FIXTURE_EVENTS + 1) >> i & 1);
    ck_assert_int_eq(conn_pipe(two->ends[0].owner->conn, two->ends[1].owner->conn, options), 0);
    fixture_settle(two->fixture);
    fixture_run(two->fixture);
}

static void close_two(struct two *two)
{
    fixture_end_all(two->fixture);
    fixture_logged(two->fixture);
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(two->ends[i].owner->socket->splices, 0);
        owner_free(&two->ends[i].owner);
        if (two->ends[i].layered)
            sealing_done(&two->ends[i].peer);
    }
    sealing_stop(two->fixture);
}

/* Says the next n bytes of the pattern. */
static void say_pattern(struct end *end, size_t n)
{
    const uint8_t *p = sealing_pattern() + end->said;

    if (end->layered) {
        sealing_add_data(&end->peer, p, n, TLS_PLAIN_MOST);
        sealing_say(&end->peer);
    } else {
        sim_say(end->owner->socket, p, n);
    }
    end->said += n;
}

static void say_end(struct end *end)
{
    if (end->layered) {
        sealing_add_close(&end->peer);
        sealing_say(&end->peer);
    }
    sim_end(end->owner->socket);
}

/* Returns how much of the pattern has been sent to a peer. */
static size_t sent_to(struct end *end)
{
    const uint8_t *p = end->owner->socket->sent;
    size_t n = end->owner->socket->sent_n;

    if (end->layered) {
        sealing_look(&end->peer);
        p = end->peer.plain.p;
        n = end->peer.plain.n;
    }
    test_require(n == 0 || memcmp(p, sealing_pattern(), n) == 0);
    return n;
}

static void check_all_sent(struct two *two)
{
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(sent_to(&two->ends[i]), two->ends[!i].said);
}

static void check_told(struct end *end)
{
    ck_assert(end->owner->socket->shut || end->owner->socket->closed);
    ck_assert(!end->owner->socket->reset);
    if (!end->layered)
        return;
    sealing_look(&end->peer);
    ck_assert_int_eq(end->peer.alert, TLS_CLOSE_NOTIFY);
    ck_assert_uint_eq(end->peer.raw.n, 0);
}

START_TEST(bytes_go_both_ways)
{
    static const size_t sizes[] = { 1, 5, 16384, 16385, 70000, 500000 };
    struct two two;

    open_two(&two, _i, &(struct conn_pipe_options) { 0 });
    for (unsigned i = 0; i < countof(sizes); i++) {
        say_pattern(&two.ends[0], sizes[i]);
        say_pattern(&two.ends[1], sizes[countof(sizes) - 1 - i]);
        fixture_run(two.fixture);
        check_all_sent(&two);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(two.ends[i].owner->conn->received, two.ends[i].said);
        ck_assert_uint_eq(two.ends[i].owner->conn->sent, two.ends[!i].said);
    }
    close_two(&two);
}
END_TEST

/* The answer alone is to be flushed: the bytes have gone straight to the other end. */
START_TEST(a_request_for_new_keys_is_answered)
{
    struct two two;

    open_two(&two, _i, &(struct conn_pipe_options) { 0 });
    for (int i = 0; i < 2; i++) {
        struct end *end = &two.ends[i];

        if (!end->layered)
            continue;
        sealing_add_update(&end->peer, true);
        say_pattern(end, 10);
        fixture_run(two.fixture);
        sealing_look(&end->peer);
        ck_assert_uint_eq(end->peer.updates, 1);
        check_all_sent(&two);
    }
    close_two(&two);
}
END_TEST

START_TEST(slow_readers_are_waited_for)
{
    static const size_t rooms[] = { 0, 1, 7, 1000, 20000, 66000 };

    for (unsigned i = 0; i < countof(rooms); i++) {
        struct two two;

        open_two(&two, _i, &(struct conn_pipe_options) { 0 });
        for (int j = 0; j < 2; j++) {
            sim_set_room(two.ends[j].owner->socket, rooms[i]);
            say_pattern(&two.ends[j], 300000);
        }
        fixture_run(two.fixture);
        for (int j = 0; j < 2; j++) { /* little is taken from the peers */
            ck_assert_uint_le(two.ends[j].owner->conn->received, rooms[i] + 5 * 65536);
            ck_assert_uint_lt(two.ends[j].owner->socket->sends, 20);
        }
        for (int more = 0; more < 100; more++)
            for (int j = 0; j < 2; j++) {
                sim_set_room(two.ends[j].owner->socket, 1 + (size_t)more * 100);
                fixture_run(two.fixture);
                sent_to(&two.ends[j]);
            }
        for (int j = 0; j < 2; j++)
            sim_set_room(two.ends[j].owner->socket, SIZE_MAX);
        fixture_run(two.fixture);
        check_all_sent(&two);
        close_two(&two);
    }
}
END_TEST

START_TEST(halves_end_one_by_one)
{
    for (size_t room = 0; room < 100; room += 9) {
        struct two two;

        open_two(&two, _i, &(struct conn_pipe_options) { 0 });
        sim_set_room(two.ends[1].owner->socket, room);
        say_pattern(&two.ends[0], 50);
        say_end(&two.ends[0]);
        fixture_run(two.fixture);
        ck_assert(room >= 99 || !two.ends[1].owner->socket->shut || !two.ends[1].layered);
        sim_set_room(two.ends[1].owner->socket, SIZE_MAX);
        fixture_run(two.fixture);
        check_told(&two.ends[1]);
        say_pattern(&two.ends[1], 50000);
        fixture_run(two.fixture);
        check_all_sent(&two);
        ck_assert(!two.ends[0].owner->socket->shut);
        say_end(&two.ends[1]);
        fixture_run(two.fixture);
        for (int i = 0; i < 2; i++) {
            ck_assert_int_eq(two.ends[i].owner->reason, FB_FINISHED);
            check_told(&two.ends[i]);
        }
        close_two(&two);
    }
}
END_TEST

START_TEST(they_end_together)
{
    for (int first = 0; first < 2; first++) {
        struct two two;

        open_two(&two, _i, &(struct conn_pipe_options) { .ends_together = true });
        say_pattern(&two.ends[first], 200000);
        say_end(&two.ends[first]);
        fixture_run(two.fixture);
        for (int i = 0; i < 2; i++)
            ck_assert_uint_eq(two.ends[i].owner->closings, 1);
        ck_assert_uint_eq(sent_to(&two.ends[!first]), 200000);
        check_told(&two.ends[!first]);
        close_two(&two);
    }
}
END_TEST

/* The rate holds on average: a record is received whole. */
START_TEST(a_rate_holds)
{
    struct two two;

    open_two(&two, _i, &(struct conn_pipe_options) { .rates = { 20000, 50000 } });
    say_pattern(&two.ends[0], 200000);
    say_pattern(&two.ends[1], 500000);
    fixture_run(two.fixture);
    for (size_t second = 0; second < 20; second++) {
        for (int i = 0; i < 2; i++) {
            size_t rate = i == 0 ? 50000 : 20000;

            ck_assert_uint_le(sent_to(&two.ends[i]), rate * (second + 1) + 4 * TLS_PLAIN_MOST);
        }
        fixture_pass(two.fixture, 1000);
    }
    check_all_sent(&two);
    close_two(&two);
}
END_TEST

START_TEST(few_bytes_at_once)
{
    struct two two;

    open_two(&two, _i, &(struct conn_pipe_options) { .most = 100 });
    say_pattern(&two.ends[0], 100000);
    say_pattern(&two.ends[1], 100000);
    fixture_run(two.fixture);
    check_all_sent(&two);
    close_two(&two);
}
END_TEST

START_TEST(a_wrong_record_breaks_both)
{
    struct two two;
    int wrong;

    open_two(&two, _i, &(struct conn_pipe_options) { 0 });
    wrong = two.ends[0].layered ? 0 : 1;
    say_pattern(&two.ends[wrong], 1000);
    sim_says(two.ends[wrong].owner->socket, "no record");
    fixture_run(two.fixture);
    ck_assert_int_eq(two.ends[wrong].owner->reason, FB_IO_ERROR);
    ck_assert_int_eq(two.ends[!wrong].owner->reason, FB_PIPE_BROKEN);
    ck_assert_uint_eq(sent_to(&two.ends[!wrong]), 1000);
    sealing_look(&two.ends[wrong].peer);
    ck_assert_int_eq(two.ends[wrong].peer.alert, TLS_UNEXPECTED_MESSAGE);
    close_two(&two);
}
END_TEST

/* A send finds the reset of the second end; what it has said before is delivered, and held output
 * is given up. */
START_TEST(a_send_finds_a_reset)
{
    for (int held = 0; held < 2; held++) {
        struct two two;
        unsigned sends;

        open_two(&two, _i, &(struct conn_pipe_options) { 0 });
        if (held) {
            sim_set_room(two.ends[1].owner->socket, 3);
            say_pattern(&two.ends[0], 10);
            fixture_run(two.fixture);
        }
        sim_set_room(two.ends[0].owner->socket, 2);
        say_pattern(&two.ends[1], 100000);
        fixture_run(two.fixture);
        sim_break_output(two.ends[1].owner->socket, EPIPE);
        say_pattern(&two.ends[0], 10);
        for (int i = 0; i < 20; i++)
            fixture_turn(two.fixture);
        sends = two.ends[1].owner->socket->sends;
        for (int i = 0; i < 20; i++)
            fixture_turn(two.fixture);
        ck_assert_uint_eq(two.ends[1].owner->socket->sends, sends); /* the loop does not spin */
        sim_set_room(two.ends[0].owner->socket, SIZE_MAX);
        sim_reset(two.ends[1].owner->socket, ECONNRESET);
        fixture_run(two.fixture);
        fixture_pass(two.fixture, FIXTURE_LINGERING_MS);
        ck_assert_int_eq(two.ends[1].owner->reason, FB_RESET);
        ck_assert_uint_eq(sent_to(&two.ends[0]), 100000);
        close_two(&two);
    }
}
END_TEST

/* Input received before the pipe, and before TLS, comes first. */
START_TEST(unconsumed_input_comes_first)
{
    struct two two = { .fixture = sealing_start(_i % FIXTURE_EVENTS, 2) };

    for (int i = 0; i < 2; i++) {
        open_end(&two.ends[i], two.fixture, (_i / FIXTURE_EVENTS + 1) >> i & 1);
        two.ends[i].owner->data = owner_leave_input;
        say_pattern(&two.ends[i], 100000);
        fixture_run(two.fixture);
    }
    ck_assert_int_eq(owner_pipe(two.ends[0].owner, two.ends[1].owner, 0), 0);
    fixture_settle(two.fixture);
    fixture_run(two.fixture);
    check_all_sent(&two);
    close_two(&two);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, bytes_go_both_ways, 0, KINDS);
    tcase_add_loop_test(tcase, a_request_for_new_keys_is_answered, 0, KINDS);
    tcase_add_loop_test(tcase, slow_readers_are_waited_for, 0, KINDS);
    tcase_add_loop_test(tcase, halves_end_one_by_one, 0, KINDS);
    tcase_add_loop_test(tcase, they_end_together, 0, KINDS);
    tcase_add_loop_test(tcase, a_rate_holds, 0, KINDS);
    tcase_add_loop_test(tcase, few_bytes_at_once, 0, KINDS);
    tcase_add_loop_test(tcase, a_wrong_record_breaks_both, 0, KINDS);
    tcase_add_loop_test(tcase, a_send_finds_a_reset, 0, KINDS);
    tcase_add_loop_test(tcase, unconsumed_input_comes_first, 0, KINDS);
}

TEST_MAIN("layer_pipe", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of a connection: gathered in a callback, sent once afterwards, borrowed where possible. */
#include "support/owner.h"

#include <string.h>

#define HIGH_WATER (64 * 1024)
#define LOW_WATER (16 * 1024)

static void end_all(struct fixture *fixture, struct owner **owner)
{
    fixture_end_all(fixture);
    owner_free(owner);
    fixture_stop(fixture);
}

static size_t write_much(struct owner *owner, fb_bytes in)
{
    for (size_t i = 0; i < owner->n; i++)
        conn_write(owner->conn, "abc", 3);
    conn_write(owner->conn, "", 0);
    return in.n;
}

START_TEST(a_callback_sends_once)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->data = write_much;
    sim_says(owner->socket, "?");
    fixture_run(fixture);
    ck_assert_uint_eq(owner->socket->sends, 0); /* no output was left to write */
    owner->n = 1000;
    sim_says(owner->socket, "?");
    fixture_run(fixture);
    ck_assert_uint_eq(owner->socket->sends, 1);
    ck_assert_uint_eq(owner->socket->sent_n, 3000);
    ck_assert_uint_eq(owner->conn->unsent, 0);
    ck_assert_ptr_null(owner->conn->out);
    end_all(fixture, &owner);
}
END_TEST

START_TEST(output_within_the_input_is_not_copied)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->data = owner_echo;
    sim_says(owner->socket, "borrowed");
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(owner), "borrowed");
    ck_assert_int_eq(owner->socket->piece_n, 1);
    ck_assert_ptr_eq(owner->socket->pieces[0].iov_base, owner->last_p);

    /* the same from kept input */
    owner->data = owner_leave_input;
    sim_says(owner->socket, "ke");
    fixture_run(fixture);
    owner->data = owner_echo;
    sim_says(owner->socket, "pt");
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(owner), "borrowedkept");
    ck_assert_ptr_eq(owner->socket->pieces[0].iov_base, owner->last_p);
    end_all(fixture, &owner);
}
END_TEST

/* Copied and borrowed pieces in turn. */
static size_t write_mixed(struct owner *owner, fb_bytes in)
{
    for (size_t i = 0; i < in.n; i++) {
        conn_write(owner->conn, in.p + i, 1);
        conn_write(owner->conn, "-", 1);
    }
    return in.n;
}

static void check_mixed(const struct owner *owner, size_t n)
{
    ck_assert_uint_eq(owner->socket->sent_n, 2 * n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(owner->socket->sent[2 * i], 'a' + i % 26);
        ck_assert_uint_eq(owner->socket->sent[2 * i + 1], '-');
    }
}

static const struct {
    size_t n;    /* bytes of input */
    size_t room; /* bytes that the peer takes at first */
    size_t most; /* bytes that one send takes */
} mixtures[] = {
    { 3, SIZE_MAX, SIZE_MAX },
    { 31, SIZE_MAX, SIZE_MAX },
    { 500, SIZE_MAX, SIZE_MAX }, /* more pieces than one send takes */
    { 500, SIZE_MAX, 7 },
    { 500, 0, SIZE_MAX },
    { 500, 1, SIZE_MAX },
    { 500, 333, SIZE_MAX },
    { 500, 128, 1 },
};

START_TEST(copied_and_borrowed_output_keeps_its_order)
{
    for (size_t i = 0; i < countof(mixtures); i++) {
        struct fixture *fixture = fixture_start_net(_i, 2);
        struct owner *owner = owner_open(fixture), *noise = owner_open(fixture);
        size_t n = mixtures[i].n;
        char in[512];

        for (size_t at = 0; at < n; at++)
            in[at] = (char)('a' + at % 26);
        owner->data = write_mixed;
        owner->socket->send_most = mixtures[i].most;
        sim_set_room(owner->socket, mixtures[i].room);
        sim_say(owner->socket, in, n);
        fixture_run(fixture);
        memset(in, '#', sizeof(in)); /* into the same buffer */
        sim_say(noise->socket, in, sizeof(in));
        fixture_run(fixture);
        while (owner->socket->sent_n < 2 * n) {
            size_t before = owner->socket->sent_n;

            sim_set_room(owner->socket, 100);
            fixture_run(fixture);
            ck_assert_uint_gt(owner->socket->sent_n, before);
        }
        check_mixed(owner, n);
        fixture_end_all(fixture);
        owner_free(&noise);
        owner_free(&owner);
        fixture_stop(fixture);
    }
}
END_TEST

/* Own bytes before or after the lent bytes. */
static size_t write_around(struct owner *owner, fb_bytes in)
{
    ck_assert_uint_eq(in.n, 4);
    conn_write(owner->conn, in.p + 1, 3);
    conn_write(owner->conn, in.p + 3, 2); /* a byte of the input lies behind */
    return in.n;
}

START_TEST(what_is_not_all_lent_is_copied)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);
    const uint8_t *lent = fixture->net->scratch;

    fixture->net->scratch[4] = '!';
    owner->data = write_around;
    sim_says(owner->socket, "abcd");
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(owner), "bcdd!");
    ck_assert_int_eq(owner->socket->piece_n, 1); /* output behind lent bytes makes a copy of them */
    ck_assert_ptr_ne(owner->socket->pieces[0].iov_base, lent + 1);
    end_all(fixture, &owner);
}
END_TEST

static size_t write_head_and_body(struct owner *owner, fb_bytes in)
{
    conn_write(owner->conn, "head ", 5);
    conn_write(owner->conn, in.p, 2);
    conn_write(owner->conn, in.p + 2, in.n - 2);
    return in.n;
}

START_TEST(a_lent_body_leaves_with_its_head)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->data = write_head_and_body;
    sim_says(owner->socket, "body");
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(owner), "head body");
    ck_assert_int_eq(owner->socket->piece_n, 2);
    ck_assert_ptr_eq(owner->socket->pieces[1].iov_base, fixture->net->scratch);
    end_all(fixture, &owner);
}
END_TEST

static size_t write_to_both(struct owner *owner, fb_bytes in)
{
    conn_write(owner->other->conn, in.p, in.n);
    conn_write(owner->conn, in.p, in.n);
    conn_write(owner->other->conn, "!", 1);
    conn_write(owner->conn, "!", 1);
    return in.n;
}

/* The first borrows, the other copies. */
START_TEST(lent_input_goes_to_two)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *owner = owner_open(fixture), *other = owner_open(fixture);

    owner->data = write_to_both;
    owner->other = other;
    sim_set_room(other->socket, 2);
    sim_says(owner->socket, "same");
    fixture_run(fixture);
    sim_says(owner->socket, "more");
    sim_set_room(other->socket, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(owner), "same!more!");
    ck_assert_str_eq(owner_sent(other), "same!more!");
    fixture_end_all(fixture);
    owner_free(&other);
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

static size_t push_and_lend(struct owner *owner, fb_bytes in)
{
    conn_push(owner->other->conn);
    ck_assert_uint_eq(owner->other->conn->unsent, 0);
    conn_write(owner->other->conn, in.p, in.n);
    return in.n;
}

/* Lent input follows waiting output, pushed meanwhile by a callback of a second connection. */
START_TEST(pushed_output_holds_nothing_back)
{
    static const size_t waiting[] = { 10, HIGH_WATER + 100 };

    for (size_t i = 0; i < countof(waiting); i++) {
        struct fixture *fixture = fixture_start_net(_i, 2);
        struct owner *owner = owner_open(fixture), *other = owner_open(fixture);

        owner->data = push_and_lend;
        owner->other = other;
        sim_set_room(other->socket, 0);
        owner_write_pattern(other, waiting[i]);
        fixture_settle(fixture);
        ck_assert_uint_eq(fixture_count(fixture, COUNTER_WRITING), 1);
        sim_says(owner->socket, "lent");
        sim_set_room(other->socket, SIZE_MAX);
        fixture_turn(fixture); /* reports input and room; the input is looked at first */
        ck_assert_uint_eq(other->socket->sent_n, waiting[i] + 4);
        ck_assert_uint_eq(fixture_count(fixture, COUNTER_WRITING), 0);
        ck_assert_uint_eq(other->writables, waiting[i] > HIGH_WATER);
        sim_says(other->socket, "read");
        fixture_run(fixture);
        ck_assert_str_eq(other->last, "read");
        fixture_end_all(fixture);
        owner_free(&other);
        owner_free(&owner);
        fixture_stop(fixture);
    }
}
END_TEST

START_TEST(output_goes_on_when_the_peer_takes_it)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);
    size_t n = 1000 * 1000, steps = 0;

    sim_set_room(owner->socket, 0);
    owner_write_pattern(owner, n);
    fixture_settle(fixture);
    ck_assert_uint_eq(owner->socket->sends, 1);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->socket->sends, 1); /* no send was tried in vain */
    while (owner->socket->sent_n < n) {
        sim_set_room(owner->socket, 4096 + steps * 1111);
        fixture_run(fixture);
        ck_assert_uint_lt(++steps, 1000);
    }
    owner_check_pattern(owner, n);
    ck_assert_uint_eq(owner->conn->unsent, 0);
    ck_assert_ptr_null(owner->conn->out);
    end_all(fixture, &owner);
}
END_TEST

START_TEST(writing_more_keeps_the_order)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    sim_set_room(owner->socket, 5000);
    for (int i = 0; i < 100; i++) {
        owner_write_pattern(owner, 1 + (size_t)i * 37 % 5001);
        fixture_settle(fixture);
        if (i % 3 == 0) {
            sim_set_room(owner->socket, 3000);
            fixture_run(fixture);
        }
    }
    sim_set_room(owner->socket, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->conn->unsent, 0);
    owner_check_pattern(owner, owner->socket->sent_n);
    end_all(fixture, &owner);
}
END_TEST

static size_t send_answer(struct owner *owner, fb_bytes in)
{
    owner_write_pattern(owner, owner->n);
    return in.n;
}

START_TEST(unsent_output_holds_the_input_back)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);
    size_t n = HIGH_WATER;

    owner->data = send_answer;
    owner->n = n;
    sim_set_room(owner->socket, 0);
    sim_says(owner->socket, "a");
    fixture_run(fixture);
    ck_assert_uint_eq(owner->conn->unsent, n);
    sim_says(owner->socket, "b"); /* at the mark and not above: still read */
    owner->n = 1;
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 2);
    sim_says(owner->socket, "c");
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 2);

    sim_set_room(owner->socket, n + 1 - LOW_WATER); /* down to the mark, not below */
    fixture_run(fixture);
    ck_assert_uint_eq(owner->conn->unsent, LOW_WATER);
    ck_assert_uint_eq(owner->datas + owner->writables, 2);
    sim_set_room(owner->socket, 1);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->writables, 1);
    ck_assert_uint_eq(owner->datas, 3);
    ck_assert_str_eq(owner->last, "c");

    sim_set_room(owner->socket, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->writables, 1); /* once */
    owner_check_pattern(owner, n + 2);
    end_all(fixture, &owner);
}
END_TEST

static void write_again(struct owner *owner)
{
    if (owner->writables < 3)
        owner_write_pattern(owner, owner->n);
}

START_TEST(writable_may_write_until_it_is_held_again)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);
    size_t n = HIGH_WATER + 100;

    owner->data = send_answer;
    owner->writable = write_again;
    owner->n = n;
    sim_set_room(owner->socket, 0);
    sim_says(owner->socket, "go");
    fixture_run(fixture);
    for (unsigned i = 1; i <= 3; i++) {
        ck_assert_uint_eq(owner->writables, i - 1);
        sim_set_room(owner->socket, owner->conn->unsent - 1);
        fixture_run(fixture);
        ck_assert_uint_eq(owner->writables, i);
    }
    sim_set_room(owner->socket, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->writables, 3);
    owner_check_pattern(owner, 3 * n);
    end_all(fixture, &owner);
}
END_TEST

static size_t answer_and_stop(struct owner *owner, fb_bytes in)
{
    owner_write_pattern(owner, owner->n);
    conn_stop(owner->conn);
    return in.n / 2;
}

START_TEST(resumed_while_held_it_is_offered_the_rest_later)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->data = answer_and_stop;
    owner->n = HIGH_WATER + 1;
    sim_set_room(owner->socket, 0);
    sim_says(owner->socket, "onetwo");
    fixture_run(fixture);
    owner->data = NULL;
    conn_resume(owner->conn);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 1); /* reading is paused */
    sim_set_room(owner->socket, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->writables, 1);
    ck_assert_uint_eq(owner->datas, 2); /* although nothing more has arrived */
    ck_assert_str_eq(owner->last, "two");
    end_all(fixture, &owner);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_callback_sends_once, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, output_within_the_input_is_not_copied, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, copied_and_borrowed_output_keeps_its_order, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_lent_body_leaves_with_its_head, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, lent_input_goes_to_two, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, what_is_not_all_lent_is_copied, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, pushed_output_holds_nothing_back, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, output_goes_on_when_the_peer_takes_it, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, writing_more_keeps_the_order, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, unsent_output_holds_the_input_back, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, writable_may_write_until_it_is_held_again, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, resumed_while_held_it_is_offered_the_rest_later, 0, FIXTURE_EVENTS);
}

TEST_MAIN("conn_output", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of a connection: gathered in a callback, sent once after it, borrowed where it can be. */
#include "net/bed.h"

#include <string.h>

#define HIGH_WATER (64 * 1024)
#define LOW_WATER (16 * 1024)

static void end_all(struct bed *bed, struct owner **owner)
{
    net_fail_all(&bed->net, FB_DRAINED);
    bed_free(owner);
    bed_tear_down(bed);
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
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->data = write_much;
    fake_says(owner->socket, "?");
    bed_run(bed);
    ck_assert_uint_eq(owner->socket->sends, 0); /* nothing was written */
    owner->n = 1000;
    fake_says(owner->socket, "?");
    bed_run(bed);
    ck_assert_uint_eq(owner->socket->sends, 1);
    ck_assert_uint_eq(owner->socket->sent_n, 3000);
    ck_assert_uint_eq(owner->conn->unsent, 0);
    ck_assert_ptr_null(owner->conn->out);
    end_all(bed, &owner);
}
END_TEST

START_TEST(output_within_the_input_is_not_copied)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->data = bed_echo;
    fake_says(owner->socket, "borrowed");
    bed_run(bed);
    ck_assert_str_eq(bed_sent(owner), "borrowed");
    ck_assert_int_eq(owner->socket->piece_n, 1);
    ck_assert_ptr_eq(owner->socket->pieces[0].iov_base, owner->last_p);

    /* the same from input that had been kept */
    owner->data = bed_leave;
    fake_says(owner->socket, "ke");
    bed_run(bed);
    owner->data = bed_echo;
    fake_says(owner->socket, "pt");
    bed_run(bed);
    ck_assert_str_eq(bed_sent(owner), "borrowedkept");
    ck_assert_ptr_eq(owner->socket->pieces[0].iov_base, owner->last_p);
    end_all(bed, &owner);
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
    size_t room; /* what the peer takes at first */
    size_t most; /* ... of one send */
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
        struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
        struct owner *owner = bed_open(bed), *noise = bed_open(bed);
        size_t n = mixtures[i].n;
        char in[512];

        for (size_t at = 0; at < n; at++)
            in[at] = (char)('a' + at % 26);
        owner->data = write_mixed;
        owner->socket->send_most = mixtures[i].most;
        fake_take(owner->socket, mixtures[i].room);
        fake_say(owner->socket, in, n);
        bed_run(bed);
        memset(in, '#', sizeof(in)); /* into the same buffer */
        fake_say(noise->socket, in, sizeof(in));
        bed_run(bed);
        while (owner->socket->sent_n < 2 * n) {
            size_t before = owner->socket->sent_n;

            fake_take(owner->socket, 100);
            bed_run(bed);
            ck_assert_uint_gt(owner->socket->sent_n, before);
        }
        check_mixed(owner, n);
        net_fail_all(&bed->net, FB_DRAINED);
        bed_free(&noise);
        bed_free(&owner);
        bed_tear_down(bed);
    }
}
END_TEST

/* Bytes of its own that begin or end where the lent ones do. */
static size_t write_around(struct owner *owner, fb_bytes in)
{
    ck_assert_uint_eq(in.n, 4);
    conn_write(owner->conn, in.p + 1, 3);
    conn_write(owner->conn, in.p + 3, 2); /* one byte of it lies behind */
    return in.n;
}

START_TEST(what_is_not_all_lent_is_copied)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);
    const uint8_t *lent = bed->net.scratch;

    bed->net.scratch[4] = '!';
    owner->data = write_around;
    fake_says(owner->socket, "abcd");
    bed_run(bed);
    ck_assert_str_eq(bed_sent(owner), "bcdd!");
    ck_assert_int_eq(owner->socket->piece_n, 2);
    ck_assert_ptr_eq(owner->socket->pieces[0].iov_base, lent + 1);
    ck_assert_ptr_ne(owner->socket->pieces[1].iov_base, lent + 3);
    end_all(bed, &owner);
}
END_TEST

START_TEST(output_goes_on_when_the_peer_takes_it)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);
    size_t n = 1000 * 1000, steps = 0;

    fake_take(owner->socket, 0);
    bed_write_pattern(owner, n);
    net_flush(&bed->net);
    ck_assert_uint_eq(owner->socket->sends, 1);
    bed_run(bed);
    ck_assert_uint_eq(owner->socket->sends, 1); /* it was not tried again in vain */
    while (owner->socket->sent_n < n) {
        fake_take(owner->socket, 4096 + steps * 1111);
        bed_run(bed);
        ck_assert_uint_lt(++steps, 1000);
    }
    bed_check_pattern(owner, n);
    ck_assert_uint_eq(owner->conn->unsent, 0);
    ck_assert_ptr_null(owner->conn->out);
    end_all(bed, &owner);
}
END_TEST

START_TEST(writing_more_keeps_the_order)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    fake_take(owner->socket, 5000);
    for (int i = 0; i < 100; i++) {
        bed_write_pattern(owner, 1 + (size_t)i * 37 % 5001);
        net_flush(&bed->net);
        if (i % 3 == 0) {
            fake_take(owner->socket, 3000);
            bed_run(bed);
        }
    }
    fake_take(owner->socket, SIZE_MAX);
    bed_run(bed);
    ck_assert_uint_eq(owner->conn->unsent, 0);
    bed_check_pattern(owner, owner->socket->sent_n);
    end_all(bed, &owner);
}
END_TEST

static size_t answer(struct owner *owner, fb_bytes in)
{
    bed_write_pattern(owner, owner->n);
    return in.n;
}

START_TEST(unsent_output_holds_the_input_back)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);
    size_t n = HIGH_WATER;

    owner->data = answer;
    owner->n = n;
    fake_take(owner->socket, 0);
    fake_says(owner->socket, "a");
    bed_run(bed);
    ck_assert_uint_eq(owner->conn->unsent, n);
    fake_says(owner->socket, "b"); /* not above the mark: still read */
    owner->n = 1;
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 2);
    fake_says(owner->socket, "c");
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 2);

    fake_take(owner->socket, n + 1 - LOW_WATER); /* down to the mark, not below */
    bed_run(bed);
    ck_assert_uint_eq(owner->conn->unsent, LOW_WATER);
    ck_assert_uint_eq(owner->datas + owner->writables, 2);
    fake_take(owner->socket, 1);
    bed_run(bed);
    ck_assert_uint_eq(owner->writables, 1);
    ck_assert_uint_eq(owner->datas, 3);
    ck_assert_str_eq(owner->last, "c");

    fake_take(owner->socket, SIZE_MAX);
    bed_run(bed);
    ck_assert_uint_eq(owner->writables, 1); /* once */
    bed_check_pattern(owner, n + 2);
    end_all(bed, &owner);
}
END_TEST

static void write_again(struct owner *owner)
{
    if (owner->writables < 3)
        bed_write_pattern(owner, owner->n);
}

START_TEST(writable_may_write_until_it_is_held_again)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);
    size_t n = HIGH_WATER + 100;

    owner->data = answer;
    owner->writable = write_again;
    owner->n = n;
    fake_take(owner->socket, 0);
    fake_says(owner->socket, "go");
    bed_run(bed);
    for (unsigned i = 1; i <= 3; i++) {
        ck_assert_uint_eq(owner->writables, i - 1);
        fake_take(owner->socket, owner->conn->unsent - 1);
        bed_run(bed);
        ck_assert_uint_eq(owner->writables, i);
    }
    fake_take(owner->socket, SIZE_MAX);
    bed_run(bed);
    ck_assert_uint_eq(owner->writables, 3);
    bed_check_pattern(owner, 3 * n);
    end_all(bed, &owner);
}
END_TEST

static size_t answer_and_stop(struct owner *owner, fb_bytes in)
{
    bed_write_pattern(owner, owner->n);
    conn_stop(owner->conn);
    return in.n / 2;
}

START_TEST(resumed_while_held_it_is_offered_the_rest_later)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->data = answer_and_stop;
    owner->n = HIGH_WATER + 1;
    fake_take(owner->socket, 0);
    fake_says(owner->socket, "onetwo");
    bed_run(bed);
    owner->data = NULL;
    conn_resume(owner->conn);
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 1); /* it is held back */
    fake_take(owner->socket, SIZE_MAX);
    bed_run(bed);
    ck_assert_uint_eq(owner->writables, 1);
    ck_assert_uint_eq(owner->datas, 2); /* although nothing more has arrived */
    ck_assert_str_eq(owner->last, "two");
    end_all(bed, &owner);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_callback_sends_once, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, output_within_the_input_is_not_copied, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, copied_and_borrowed_output_keeps_its_order, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, what_is_not_all_lent_is_copied, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, output_goes_on_when_the_peer_takes_it, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, writing_more_keeps_the_order, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, unsent_output_holds_the_input_back, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, writable_may_write_until_it_is_held_again, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, resumed_while_held_it_is_offered_the_rest_later, 0, BED_MECHANISMS);
}

TEST_MAIN("conn_output", add_tests)

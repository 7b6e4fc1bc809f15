/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks that touch other connections: all of them are settled after the callback. */
#include "net/bed.h"

#include <string.h>

static size_t relay(struct owner *owner, fb_bytes in)
{
    conn_write(owner->other->conn, in.p, in.n);
    return in.n;
}

static void end_two(struct bed *bed, struct owner **a, struct owner **b)
{
    net_fail_all(&bed->net, FB_DRAINED);
    bed_free(a);
    bed_free(b);
    bed_tear_down(bed);
}

static size_t see_that_it_was_sent(struct owner *owner, fb_bytes in)
{
    ck_assert_str_eq(bed_sent(owner->other), "from a");
    return in.n;
}

START_TEST(output_to_another_leaves_before_the_next_callback)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 3);
    struct owner *a = bed_open(bed), *b = bed_open(bed), *c = bed_open(bed);

    a->data = relay;
    a->other = b;
    c->data = see_that_it_was_sent;
    c->other = b;
    fake_says(a->socket, "from a");
    fake_says(c->socket, "next");
    bed_turn(bed);
    ck_assert_uint_eq(c->datas, 1);
    ck_assert_uint_eq(b->socket->sends, 1);
    ck_assert_ptr_eq(b->socket->pieces[0].iov_base, a->last_p); /* borrowed from a's input */
    conn_fail(c->conn, FB_ABORTED);
    net_flush(&bed->net);
    bed_free(&c);
    end_two(bed, &a, &b);
}
END_TEST

static size_t relay_and_abort(struct owner *owner, fb_bytes in)
{
    conn_fail(owner->conn, FB_ABORTED);
    return relay(owner, in);
}

static size_t relay_and_close(struct owner *owner, fb_bytes in)
{
    conn_close(owner->conn);
    return relay(owner, in);
}

static size_t (*const dying[])(
    struct owner *, fb_bytes) = { relay, relay_and_abort, relay_and_close };

START_TEST(borrowed_output_outlives_the_lender)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i % BED_MECHANISMS], 3);
    struct owner *a = bed_open(bed), *b = bed_open(bed), *noise = bed_open(bed);

    a->data = bed_leave; /* so that the bytes lie in a chunk of a's */
    fake_says(a->socket, "what a ");
    bed_run(bed);
    a->data = dying[_i / BED_MECHANISMS];
    a->other = b;
    fake_take(b->socket, 2);
    fake_says(a->socket, "has said");
    bed_run(bed);
    ck_assert_str_eq(bed_sent(b), "wh");
    fake_says(noise->socket, "xxxxxxxxxxxxxxxxxxxxxxxxxxx");
    bed_run(bed);
    fake_take(b->socket, SIZE_MAX);
    bed_run(bed);
    ck_assert_str_eq(bed_sent(b), "what a has said");
    net_fail_all(&bed->net, FB_DRAINED);
    bed_free(&noise);
    end_two(bed, &a, &b);
}
END_TEST

START_TEST(output_borrowed_by_one_whose_event_waits)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 3);
    struct owner *a = bed_open(bed), *noise = bed_open(bed), *b = bed_open(bed);

    /* b becomes writable in the batch in which a is given what it writes to b */
    fake_take(b->socket, 0);
    conn_write(b->conn, "first ", 6);
    net_flush(&bed->net);
    bed_run(bed);
    a->data = relay;
    a->other = b;
    fake_says(a->socket, "second");
    fake_says(noise->socket, "xxxxxx");
    fake_take(b->socket, SIZE_MAX);
    bed_turn(bed);
    ck_assert_uint_eq(a->datas + noise->datas, 2);
    bed_run(bed);
    ck_assert_str_eq(bed_sent(b), "first second");
    conn_fail(noise->conn, FB_ABORTED);
    net_flush(&bed->net);
    bed_free(&noise);
    end_two(bed, &a, &b);
}
END_TEST

static size_t abort_other(struct owner *owner, fb_bytes in)
{
    if (owner->other->conn != NULL)
        conn_fail(owner->other->conn, FB_ABORTED);
    return in.n;
}

static size_t close_other(struct owner *owner, fb_bytes in)
{
    if (owner->other->conn != NULL)
        conn_close(owner->other->conn);
    return in.n;
}

START_TEST(who_was_ended_by_another_hears_no_more)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct owner *a = bed_open(bed), *b = bed_open(bed);

    /* both have an event in the batch, and whoever comes first ends the other */
    a->data = b->data = abort_other;
    a->other = b;
    b->other = a;
    fake_says(a->socket, "?");
    fake_says(b->socket, "?");
    bed_turn(bed);
    ck_assert_uint_eq(a->datas + b->datas, 1);
    ck_assert_uint_eq(a->closings + b->closings, 1);
    end_two(bed, &a, &b);
}
END_TEST

START_TEST(who_was_closed_by_another_sends_what_it_has)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct owner *a = bed_open(bed), *b = bed_open(bed);

    fake_take(b->socket, 0);
    conn_write(b->conn, "rest", 4);
    net_flush(&bed->net);
    bed_run(bed);
    a->data = close_other;
    a->other = b;
    fake_says(a->socket, "?");
    bed_run(bed);
    ck_assert_uint_eq(b->closings, 0);
    fake_take(b->socket, SIZE_MAX);
    bed_run(bed);
    ck_assert_str_eq(bed_sent(b), "rest");
    ck_assert_int_eq(b->reason, FB_FINISHED);
    end_two(bed, &a, &b);
}
END_TEST

static void tell_and_close_other(struct owner *owner)
{
    if (owner->other == NULL)
        return;
    conn_write(owner->other->conn, "bye", 3);
    conn_close(owner->other->conn);
}

START_TEST(ends_follow_from_ends)
{
    static const struct owner chained = { .closed = tell_and_close_other };
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 100);
    struct owner *owners[100];

    for (size_t i = 0; i < countof(owners); i++)
        owners[i] = bed_create(bed, &chained);
    for (size_t i = 0; i + 1 < countof(owners); i++)
        owners[i]->other = owners[i + 1];
    bed_run(bed);
    conn_fail(owners[0]->conn, FB_ABORTED);
    net_flush(&bed->net);
    for (size_t i = 1; i < countof(owners); i++) {
        ck_assert_str_eq(bed_sent(owners[i]), "bye");
        ck_assert_int_eq(owners[i]->reason, FB_FINISHED);
        bed_free(&owners[i]);
    }
    bed_free(&owners[0]);
    bed_tear_down(bed);
}
END_TEST

static size_t resume_other(struct owner *owner, fb_bytes in)
{
    conn_resume(owner->other->conn);
    return in.n;
}

START_TEST(another_may_stop_and_resume_it)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct owner *a = bed_open(bed), *b = bed_open(bed);

    b->data = bed_leave;
    fake_says(b->socket, "kept");
    bed_run(bed);
    conn_stop(b->conn);
    b->data = NULL;
    a->data = resume_other;
    a->other = b;
    fake_says(a->socket, "go on");
    bed_run(bed);
    ck_assert_uint_eq(b->datas, 2);
    ck_assert_str_eq(b->last, "kept");
    end_two(bed, &a, &b);
}
END_TEST

static void relay_from_writable(struct owner *owner)
{
    conn_write(owner->other->conn, "it flows", 8);
}

START_TEST(writable_touches_another)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct owner *a = bed_open(bed), *b = bed_open(bed);

    a->writable = relay_from_writable;
    a->other = b;
    fake_take(a->socket, 0);
    bed_write_pattern(a, 70000);
    net_flush(&bed->net);
    bed_run(bed);
    fake_take(a->socket, SIZE_MAX);
    bed_turn(bed);
    ck_assert_str_eq(bed_sent(b), "it flows");
    end_two(bed, &a, &b);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(
        tcase, output_to_another_leaves_before_the_next_callback, 0, BED_MECHANISMS);
    tcase_add_loop_test(
        tcase, borrowed_output_outlives_the_lender, 0, (int)countof(dying) * BED_MECHANISMS);
    tcase_add_loop_test(tcase, output_borrowed_by_one_whose_event_waits, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, who_was_ended_by_another_hears_no_more, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, who_was_closed_by_another_sends_what_it_has, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, ends_follow_from_ends, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, another_may_stop_and_resume_it, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, writable_touches_another, 0, BED_MECHANISMS);
}

TEST_MAIN("conn_others", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks with calls for other connections: all touched connections are settled after the
 * callback. */
#include "support/owner.h"

#include <string.h>

static size_t relay_input(struct owner *owner, fb_bytes in)
{
    conn_write(owner->other->conn, in.p, in.n);
    return in.n;
}

static void end_two(struct fixture *fixture, struct owner **a, struct owner **b)
{
    fixture_end_all(fixture);
    owner_free(a);
    owner_free(b);
    fixture_stop(fixture);
}

static size_t see_that_it_was_sent(struct owner *owner, fb_bytes in)
{
    ck_assert_str_eq(owner_sent(owner->other), "from a");
    return in.n;
}

START_TEST(output_to_another_leaves_before_the_next_callback)
{
    struct fixture *fixture = fixture_start_net(_i, 3);
    struct owner *a = owner_open(fixture), *b = owner_open(fixture), *c = owner_open(fixture);

    a->data = relay_input;
    a->other = b;
    c->data = see_that_it_was_sent;
    c->other = b;
    sim_says(a->socket, "from a");
    sim_says(c->socket, "next");
    fixture_turn(fixture);
    ck_assert_uint_eq(c->datas, 1);
    ck_assert_uint_eq(b->socket->sends, 1);
    ck_assert_ptr_eq(b->socket->pieces[0].iov_base, a->last_p); /* borrowed from a's input */
    conn_fail(c->conn, FB_ABORTED);
    fixture_settle(fixture);
    owner_free(&c);
    end_two(fixture, &a, &b);
}
END_TEST

static size_t relay_and_abort(struct owner *owner, fb_bytes in)
{
    conn_fail(owner->conn, FB_ABORTED);
    return relay_input(owner, in);
}

static size_t relay_and_close(struct owner *owner, fb_bytes in)
{
    conn_close(owner->conn);
    return relay_input(owner, in);
}

static size_t (*const dying[])(
    struct owner *, fb_bytes) = { relay_input, relay_and_abort, relay_and_close };

START_TEST(borrowed_output_outlives_the_lender)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 3);
    struct owner *a = owner_open(fixture), *b = owner_open(fixture), *noise = owner_open(fixture);

    a->data = owner_leave_input; /* puts the bytes into a chunk of a's */
    sim_says(a->socket, "what a ");
    fixture_run(fixture);
    a->data = dying[_i / FIXTURE_EVENTS];
    a->other = b;
    sim_set_room(b->socket, 2);
    sim_says(a->socket, "has said");
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(b), "wh");
    sim_says(noise->socket, "xxxxxxxxxxxxxxxxxxxxxxxxxxx");
    fixture_run(fixture);
    sim_set_room(b->socket, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(b), "what a has said");
    fixture_end_all(fixture);
    owner_free(&noise);
    end_two(fixture, &a, &b);
}
END_TEST

START_TEST(output_borrowed_by_one_whose_event_waits)
{
    struct fixture *fixture = fixture_start_net(_i, 3);
    struct owner *a = owner_open(fixture), *noise = owner_open(fixture), *b = owner_open(fixture);

    /* b becomes writable in the batch in which a receives input to write to b */
    sim_set_room(b->socket, 0);
    conn_write(b->conn, "first ", 6);
    fixture_settle(fixture);
    fixture_run(fixture);
    a->data = relay_input;
    a->other = b;
    sim_says(a->socket, "second");
    sim_says(noise->socket, "xxxxxx");
    sim_set_room(b->socket, SIZE_MAX);
    fixture_turn(fixture);
    ck_assert_uint_eq(a->datas + noise->datas, 2);
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(b), "first second");
    conn_fail(noise->conn, FB_ABORTED);
    fixture_settle(fixture);
    owner_free(&noise);
    end_two(fixture, &a, &b);
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
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *a = owner_open(fixture), *b = owner_open(fixture);

    /* two events in a batch: the first ends the second's connection */
    a->data = b->data = abort_other;
    a->other = b;
    b->other = a;
    sim_says(a->socket, "?");
    sim_says(b->socket, "?");
    fixture_turn(fixture);
    ck_assert_uint_eq(a->datas + b->datas, 1);
    ck_assert_uint_eq(a->closings + b->closings, 1);
    end_two(fixture, &a, &b);
}
END_TEST

START_TEST(who_was_closed_by_another_sends_what_it_has)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *a = owner_open(fixture), *b = owner_open(fixture);

    sim_set_room(b->socket, 0);
    conn_write(b->conn, "rest", 4);
    fixture_settle(fixture);
    fixture_run(fixture);
    a->data = close_other;
    a->other = b;
    sim_says(a->socket, "?");
    fixture_run(fixture);
    ck_assert_uint_eq(b->closings, 0);
    sim_set_room(b->socket, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(b), "rest");
    ck_assert_int_eq(b->reason, FB_FINISHED);
    end_two(fixture, &a, &b);
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
    struct fixture *fixture = fixture_start_net(_i, 100);
    struct owner *owners[100];

    for (size_t i = 0; i < countof(owners); i++)
        owners[i] = owner_create(fixture, &chained);
    for (size_t i = 0; i + 1 < countof(owners); i++)
        owners[i]->other = owners[i + 1];
    fixture_run(fixture);
    conn_fail(owners[0]->conn, FB_ABORTED);
    fixture_settle(fixture);
    for (size_t i = 1; i < countof(owners); i++) {
        ck_assert_str_eq(owner_sent(owners[i]), "bye");
        ck_assert_int_eq(owners[i]->reason, FB_FINISHED);
        owner_free(&owners[i]);
    }
    owner_free(&owners[0]);
    fixture_stop(fixture);
}
END_TEST

static size_t resume_other(struct owner *owner, fb_bytes in)
{
    conn_resume(owner->other->conn);
    return in.n;
}

START_TEST(another_may_stop_and_resume_it)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *a = owner_open(fixture), *b = owner_open(fixture);

    b->data = owner_leave_input;
    sim_says(b->socket, "kept");
    fixture_run(fixture);
    conn_stop(b->conn);
    b->data = NULL;
    a->data = resume_other;
    a->other = b;
    sim_says(a->socket, "go on");
    fixture_run(fixture);
    ck_assert_uint_eq(b->datas, 2);
    ck_assert_str_eq(b->last, "kept");
    end_two(fixture, &a, &b);
}
END_TEST

static void relay_from_writable(struct owner *owner)
{
    conn_write(owner->other->conn, "it flows", 8);
}

START_TEST(writable_touches_another)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *a = owner_open(fixture), *b = owner_open(fixture);

    a->writable = relay_from_writable;
    a->other = b;
    sim_set_room(a->socket, 0);
    owner_write_pattern(a, 70000);
    fixture_settle(fixture);
    fixture_run(fixture);
    sim_set_room(a->socket, SIZE_MAX);
    fixture_turn(fixture);
    ck_assert_str_eq(owner_sent(b), "it flows");
    end_two(fixture, &a, &b);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(
        tcase, output_to_another_leaves_before_the_next_callback, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(
        tcase, borrowed_output_outlives_the_lender, 0, (int)countof(dying) * FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, output_borrowed_by_one_whose_event_waits, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, who_was_ended_by_another_hears_no_more, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, who_was_closed_by_another_sends_what_it_has, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, ends_follow_from_ends, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, another_may_stop_and_resume_it, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, writable_touches_another, 0, FIXTURE_EVENTS);
}

TEST_MAIN("conn_others", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Input of a connection: lent, kept when it is not consumed, offered again. */
#include "support/owner.h"

#include <string.h>

#define SCRATCH (64 * 1024)

static size_t consume_line(struct owner *owner, fb_bytes in)
{
    const uint8_t *end = memchr(in.p, '\n', in.n);

    (void)owner;
    return end != NULL ? (size_t)(end + 1 - in.p) : 0;
}

static void end_all(struct fixture *fixture, struct owner **owner)
{
    fixture_end_all(fixture);
    owner_free(owner);
    fixture_stop(fixture);
}

START_TEST(what_is_left_comes_again_with_what_follows)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->data = consume_line;
    sim_says(owner->socket, "one\ntw");
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 1);
    ck_assert_str_eq(owner->last, "one\ntw");
    sim_says(owner->socket, "o");
    fixture_run(fixture);
    ck_assert_str_eq(owner->last, "two");
    sim_says(owner->socket, "\nthree");
    fixture_run(fixture);
    ck_assert_str_eq(owner->last, "two\nthree");
    sim_says(owner->socket, "\n");
    fixture_run(fixture);
    ck_assert_str_eq(owner->last, "three\n");
    ck_assert_uint_eq(owner->datas, 4);
    sim_says(owner->socket, "4");
    fixture_run(fixture);
    ck_assert_str_eq(owner->last, "4");
    end_all(fixture, &owner);
}
END_TEST

/* Consumes nothing up to n bytes, then everything; the bytes count up from 0. */
static size_t gather_input(struct owner *owner, fb_bytes in)
{
    size_t i = 0;

    while (i < in.n && in.p[i] == i % 251)
        i++;
    ck_assert_uint_eq(i, in.n);
    return in.n < owner->n ? 0 : in.n;
}

static const struct {
    size_t piece, whole;
    bool lends;
} gathered[] = {
    { 1, 300, false },
    { 100, 50000, false },
    { 3000, 60000, false },
    { SCRATCH, 1024 * 1024, false },
    { 100, 50000, true },
    { SCRATCH, 1024 * 1024, true },
};

START_TEST(pieces_are_gathered_in_a_row)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 1);
    struct owner *owner = owner_open(fixture);
    size_t piece = gathered[_i / FIXTURE_EVENTS].piece, whole = gathered[_i / FIXTURE_EVENTS].whole;
    uint8_t *bytes = malloc(whole);

    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < whole; i++)
        bytes[i] = (uint8_t)(i % 251);
    owner->data = gather_input;
    owner->n = whole;
    owner->socket->lends = gathered[_i / FIXTURE_EVENTS].lends;
    for (size_t at = 0; at < whole; at += piece) {
        sim_say(owner->socket, bytes + at, piece < whole - at ? piece : whole - at);
        if (at % 7 == 0) /* without pauses bytes would arrive together */
            fixture_run(fixture);
    }
    fixture_run(fixture);
    ck_assert_uint_eq(owner->last_n, whole);
    ck_assert_ptr_null(owner->conn->in); /* an idle connection owns no memory */
    free(bytes);
    end_all(fixture, &owner);
}
END_TEST

static size_t stop_and_leave(struct owner *owner, fb_bytes in)
{
    conn_stop(owner->conn);
    return in.n - owner->n;
}

START_TEST(stopped_it_hears_nothing)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);
    unsigned recvs;

    owner->data = stop_and_leave;
    sim_says(owner->socket, "first");
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 1);
    recvs = owner->socket->recvs;
    sim_says(owner->socket, "second");
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 1);
    ck_assert_uint_eq(owner->socket->recvs, recvs);

    owner->data = NULL;
    conn_resume(owner->conn);
    ck_assert_uint_eq(owner->datas, 1); /* no call runs a callback */
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 2);
    ck_assert_str_eq(owner->last, "second");
    end_all(fixture, &owner);
}
END_TEST

START_TEST(resumed_it_is_offered_the_rest)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->data = stop_and_leave;
    owner->n = 4;
    sim_says(owner->socket, "one two");
    fixture_run(fixture);
    owner->data = NULL;
    conn_resume(owner->conn); /* although nothing more has arrived */
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 2);
    ck_assert_str_eq(owner->last, " two");
    conn_resume(owner->conn); /* was not stopped */
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 2);
    end_all(fixture, &owner);
}
END_TEST

static size_t leave_once(struct owner *owner, fb_bytes in)
{
    if (owner->datas > 1)
        return in.n;
    conn_stop(owner->conn);
    conn_resume(owner->conn);
    return 0;
}

START_TEST(resumed_within_data_it_is_offered_the_rest)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->data = leave_once;
    sim_says(owner->socket, "again");
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 2);
    ck_assert_str_eq(owner->last, "again");
    end_all(fixture, &owner);
}
END_TEST

static void stop_at_once(struct owner *owner)
{
    conn_stop(owner->conn);
}

START_TEST(stopped_when_opened_it_is_not_read)
{
    static const struct owner stopping = { .opened = stop_at_once };
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_create(fixture, &stopping);

    sim_says(owner->socket, "early");
    fixture_run(fixture);
    ck_assert_uint_eq(owner->socket->recvs, 0);
    conn_resume(owner->conn);
    fixture_run(fixture);
    ck_assert_str_eq(owner->last, "early");
    end_all(fixture, &owner);
}
END_TEST

static size_t stop_and_resume(struct owner *owner, fb_bytes in)
{
    conn_stop(owner->conn);
    conn_resume(owner->conn);
    return in.n - owner->n;
}

START_TEST(a_resume_with_nothing_left_is_over)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->data = stop_and_resume;
    sim_says(owner->socket, "all");
    fixture_run(fixture);
    ck_assert_uint_eq(owner->socket->recvs, 1); /* no receive in vain, only to get "again" */
    owner->data = owner_leave_input;
    sim_says(owner->socket, "next");
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 2); /* the rest is not offered at once again */
    ck_assert_uint_eq(owner->socket->recvs, 2);
    end_all(fixture, &owner);
}
END_TEST

START_TEST(the_end_comes_with_the_rest)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->data = consume_line;
    owner->socket->tells_eof = true;
    sim_says(owner->socket, "whole\nhalf");
    sim_end(owner->socket);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 1);
    ck_assert_uint_eq(owner->eofs, 1);
    ck_assert_str_eq(owner->last, "half");
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    ck_assert(!owner->socket->shut); /* no event was pending */
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

START_TEST(behind_the_end_output_still_leaves)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->eof = owner_ignore_eof;
    sim_end(owner->socket);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->eofs, 1);
    ck_assert_uint_eq(owner->last_n, 0);
    conn_write(owner->conn, "answer", 6);
    fixture_settle(fixture);
    ck_assert_str_eq(owner_sent(owner), "answer");
    conn_resume(owner->conn);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->eofs, 1);
    conn_close(owner->conn);
    fixture_settle(fixture);
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

START_TEST(the_end_waits_for_resume)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->data = stop_and_leave;
    owner->n = 3;
    owner->socket->tells_eof = true;
    sim_says(owner->socket, "let");
    sim_end(owner->socket);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->eofs, 0);
    owner->data = owner_leave_input;
    conn_resume(owner->conn);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 2);
    ck_assert_uint_eq(owner->eofs, 1);
    ck_assert_str_eq(owner->last, "let");
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

START_TEST(an_empty_recv_is_no_end)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    sim_stall(owner->socket);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 0);
    sim_says(owner->socket, "a");
    sim_stall(owner->socket);
    sim_says(owner->socket, "b");
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 2);
    ck_assert_str_eq(owner->last, "b");
    end_all(fixture, &owner);
}
END_TEST

/* Endless input: as much again as is received. */
static size_t ask_for_more(struct owner *owner, fb_bytes in)
{
    sim_say(owner->socket, in.p, in.n);
    return in.n;
}

START_TEST(endless_input_leaves_the_others_their_turn)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *greedy = owner_open(fixture), *modest = owner_open(fixture);
    static const uint8_t bytes[SCRATCH];

    greedy->data = ask_for_more;
    sim_say(greedy->socket, bytes, sizeof(bytes));
    sim_says(modest->socket, "me too");
    fixture_turn(fixture);
    ck_assert_uint_eq(modest->datas, 1);
    ck_assert_uint_ge(greedy->datas, 1);
    for (unsigned i = 0; i < 3; i++) {
        unsigned before = greedy->datas;

        sim_says(modest->socket, "me too");
        fixture_turn(fixture);
        ck_assert_uint_eq(modest->datas, i + 2);
        ck_assert_uint_gt(greedy->datas, before); /* without a change it is not forgotten */
        ck_assert_uint_lt(greedy->datas, before + 32);
    }
    greedy->data = NULL;
    fixture_end_all(fixture);
    owner_free(&greedy);
    owner_free(&modest);
    fixture_stop(fixture);
}
END_TEST

START_TEST(input_lies_in_memory_of_the_operation)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->socket->lends = true;
    owner->data = consume_line;
    sim_says(owner->socket, "one\ntw");
    fixture_run(fixture);
    ck_assert_ptr_ne(owner->last_p, fixture->net->scratch);
    sim_says(owner->socket, "o\n");
    fixture_run(fixture);
    ck_assert_str_eq(owner->last, "two\n");
    end_all(fixture, &owner);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, what_is_left_comes_again_with_what_follows, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(
        tcase, pieces_are_gathered_in_a_row, 0, (int)countof(gathered) * FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, stopped_it_hears_nothing, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, resumed_it_is_offered_the_rest, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, resumed_within_data_it_is_offered_the_rest, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, stopped_when_opened_it_is_not_read, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_resume_with_nothing_left_is_over, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, the_end_comes_with_the_rest, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, behind_the_end_output_still_leaves, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, the_end_waits_for_resume, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, an_empty_recv_is_no_end, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, endless_input_leaves_the_others_their_turn, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, input_lies_in_memory_of_the_operation, 0, FIXTURE_EVENTS);
}

TEST_MAIN("conn_input", add_tests)

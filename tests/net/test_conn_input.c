/* SPDX-License-Identifier: BSD-2-Clause */
/* Input of a connection: lent, kept when it is not consumed, offered again. */
#include "net/bed.h"

#include <string.h>

#define SCRATCH (64 * 1024)

static size_t consume_line(struct owner *owner, fb_bytes in)
{
    const uint8_t *end = memchr(in.p, '\n', in.n);

    (void)owner;
    return end != NULL ? (size_t)(end + 1 - in.p) : 0;
}

static void end_all(struct bed *bed, struct owner **owner)
{
    net_fail_all(&bed->net, FB_DRAINED);
    bed_free(owner);
    bed_tear_down(bed);
}

START_TEST(what_is_left_comes_again_with_what_follows)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->data = consume_line;
    fake_says(owner->socket, "one\ntw");
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 1);
    ck_assert_str_eq(owner->last, "one\ntw");
    fake_says(owner->socket, "o");
    bed_run(bed);
    ck_assert_str_eq(owner->last, "two");
    fake_says(owner->socket, "\nthree");
    bed_run(bed);
    ck_assert_str_eq(owner->last, "two\nthree");
    fake_says(owner->socket, "\n");
    bed_run(bed);
    ck_assert_str_eq(owner->last, "three\n");
    ck_assert_uint_eq(owner->datas, 4);
    fake_says(owner->socket, "4");
    bed_run(bed);
    ck_assert_str_eq(owner->last, "4");
    end_all(bed, &owner);
}
END_TEST

/* Consumes nothing up to n bytes, then everything; the bytes count up from 0. */
static size_t gather(struct owner *owner, fb_bytes in)
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
    struct bed *bed = bed_set_up(bed_mechanisms[_i % BED_MECHANISMS], 1);
    struct owner *owner = bed_open(bed);
    size_t piece = gathered[_i / BED_MECHANISMS].piece, whole = gathered[_i / BED_MECHANISMS].whole;
    uint8_t *bytes = malloc(whole);

    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < whole; i++)
        bytes[i] = (uint8_t)(i % 251);
    owner->data = gather;
    owner->n = whole;
    owner->socket->lends = gathered[_i / BED_MECHANISMS].lends;
    for (size_t at = 0; at < whole; at += piece) {
        fake_say(owner->socket, bytes + at, piece < whole - at ? piece : whole - at);
        if (at % 7 == 0) /* else more than one arrives at once */
            bed_run(bed);
    }
    bed_run(bed);
    ck_assert_uint_eq(owner->last_n, whole);
    ck_assert_ptr_null(owner->conn->in); /* an idle connection owns no memory */
    free(bytes);
    end_all(bed, &owner);
}
END_TEST

static size_t stop_and_leave(struct owner *owner, fb_bytes in)
{
    conn_stop(owner->conn);
    return in.n - owner->n;
}

START_TEST(stopped_it_hears_nothing)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);
    unsigned recvs;

    owner->data = stop_and_leave;
    fake_says(owner->socket, "first");
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 1);
    recvs = owner->socket->recvs;
    fake_says(owner->socket, "second");
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 1);
    ck_assert_uint_eq(owner->socket->recvs, recvs);

    owner->data = NULL;
    conn_resume(owner->conn);
    ck_assert_uint_eq(owner->datas, 1); /* no call runs a callback */
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 2);
    ck_assert_str_eq(owner->last, "second");
    end_all(bed, &owner);
}
END_TEST

START_TEST(resumed_it_is_offered_the_rest)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->data = stop_and_leave;
    owner->n = 4;
    fake_says(owner->socket, "one two");
    bed_run(bed);
    owner->data = NULL;
    conn_resume(owner->conn); /* although nothing more has arrived */
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 2);
    ck_assert_str_eq(owner->last, " two");
    conn_resume(owner->conn); /* was not stopped */
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 2);
    end_all(bed, &owner);
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
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->data = leave_once;
    fake_says(owner->socket, "again");
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 2);
    ck_assert_str_eq(owner->last, "again");
    end_all(bed, &owner);
}
END_TEST

static void stop_at_once(struct owner *owner)
{
    conn_stop(owner->conn);
}

START_TEST(stopped_when_opened_it_is_not_read)
{
    static const struct owner stopping = { .opened = stop_at_once };
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_create(bed, &stopping);

    fake_says(owner->socket, "early");
    bed_run(bed);
    ck_assert_uint_eq(owner->socket->recvs, 0);
    conn_resume(owner->conn);
    bed_run(bed);
    ck_assert_str_eq(owner->last, "early");
    end_all(bed, &owner);
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
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->data = stop_and_resume;
    fake_says(owner->socket, "all");
    bed_run(bed);
    ck_assert_uint_eq(owner->socket->recvs, 1); /* not in vain until "again" */
    owner->data = bed_leave;
    fake_says(owner->socket, "next");
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 2); /* not offered at once again */
    ck_assert_uint_eq(owner->socket->recvs, 2);
    end_all(bed, &owner);
}
END_TEST

START_TEST(the_end_comes_with_the_rest)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->data = consume_line;
    owner->socket->tells_eof = true;
    fake_says(owner->socket, "whole\nhalf");
    fake_end(owner->socket);
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 1);
    ck_assert_uint_eq(owner->eofs, 1);
    ck_assert_str_eq(owner->last, "half");
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    ck_assert(!owner->socket->shut); /* nothing was pending */
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

START_TEST(behind_the_end_output_still_leaves)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->eof = bed_stay;
    fake_end(owner->socket);
    bed_run(bed);
    ck_assert_uint_eq(owner->eofs, 1);
    ck_assert_uint_eq(owner->last_n, 0);
    conn_write(owner->conn, "answer", 6);
    net_flush(&bed->net);
    ck_assert_str_eq(bed_sent(owner), "answer");
    conn_resume(owner->conn);
    bed_run(bed);
    ck_assert_uint_eq(owner->eofs, 1);
    conn_close(owner->conn);
    net_flush(&bed->net);
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

START_TEST(the_end_waits_for_resume)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->data = stop_and_leave;
    owner->n = 3;
    owner->socket->tells_eof = true;
    fake_says(owner->socket, "let");
    fake_end(owner->socket);
    bed_run(bed);
    ck_assert_uint_eq(owner->eofs, 0);
    owner->data = bed_leave;
    conn_resume(owner->conn);
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 2);
    ck_assert_uint_eq(owner->eofs, 1);
    ck_assert_str_eq(owner->last, "let");
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

START_TEST(an_empty_recv_is_no_end)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    fake_stall(owner->socket);
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 0);
    fake_says(owner->socket, "a");
    fake_stall(owner->socket);
    fake_says(owner->socket, "b");
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 2);
    ck_assert_str_eq(owner->last, "b");
    end_all(bed, &owner);
}
END_TEST

/* Endless input: as much again as is received. */
static size_t ask_for_more(struct owner *owner, fb_bytes in)
{
    fake_say(owner->socket, in.p, in.n);
    return in.n;
}

START_TEST(endless_input_leaves_the_others_their_turn)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct owner *greedy = bed_open(bed), *modest = bed_open(bed);
    static const uint8_t bytes[SCRATCH];

    greedy->data = ask_for_more;
    fake_say(greedy->socket, bytes, sizeof(bytes));
    fake_says(modest->socket, "me too");
    bed_turn(bed);
    ck_assert_uint_eq(modest->datas, 1);
    ck_assert_uint_ge(greedy->datas, 1);
    for (unsigned i = 0; i < 3; i++) {
        unsigned before = greedy->datas;

        fake_says(modest->socket, "me too");
        bed_turn(bed);
        ck_assert_uint_eq(modest->datas, i + 2);
        ck_assert_uint_gt(greedy->datas, before); /* without a change it is not forgotten */
        ck_assert_uint_lt(greedy->datas, before + 32);
    }
    greedy->data = NULL;
    net_fail_all(&bed->net, FB_DRAINED);
    bed_free(&greedy);
    bed_free(&modest);
    bed_tear_down(bed);
}
END_TEST

START_TEST(input_lies_in_memory_of_the_operation)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->socket->lends = true;
    owner->data = consume_line;
    fake_says(owner->socket, "one\ntw");
    bed_run(bed);
    ck_assert_ptr_ne(owner->last_p, bed->net.scratch);
    fake_says(owner->socket, "o\n");
    bed_run(bed);
    ck_assert_str_eq(owner->last, "two\n");
    end_all(bed, &owner);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, what_is_left_comes_again_with_what_follows, 0, BED_MECHANISMS);
    tcase_add_loop_test(
        tcase, pieces_are_gathered_in_a_row, 0, (int)countof(gathered) * BED_MECHANISMS);
    tcase_add_loop_test(tcase, stopped_it_hears_nothing, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, resumed_it_is_offered_the_rest, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, resumed_within_data_it_is_offered_the_rest, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, stopped_when_opened_it_is_not_read, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, a_resume_with_nothing_left_is_over, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, the_end_comes_with_the_rest, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, behind_the_end_output_still_leaves, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, the_end_waits_for_resume, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, an_empty_recv_is_no_end, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, endless_input_leaves_the_others_their_turn, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, input_lies_in_memory_of_the_operation, 0, BED_MECHANISMS);
}

TEST_MAIN("conn_input", add_tests)

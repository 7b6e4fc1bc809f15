/* SPDX-License-Identifier: BSD-2-Clause */
/* fb_alloc(), fb_temp_alloc() and what a long life costs. */
#include "sdk/actors.h"

#include <string.h>

static void *(*const allocs[])(fb_conn *conn, size_t n) = { fb_alloc, fb_temp_alloc };

START_TEST(it_is_aligned_and_apart)
{
    fb_test *test = start();
    struct actor a = { 0 };
    uint8_t *pieces[400];
    size_t sizes[400];

    visit(test, &a);
    for (size_t i = 0; i < 400; i++) {
        sizes[i] = i % 7 == 0 ? i * 101 : i % 40;
        pieces[i] = allocs[_i](a.conn, sizes[i]);
        ck_assert_ptr_nonnull(pieces[i]);
        ck_assert_uint_eq((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
        memset(pieces[i], (int)i, sizes[i]);
    }
    for (size_t i = 0; i < 400; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            test_require(pieces[i][k] == (uint8_t)i);
    finish(&test);
}
END_TEST

START_TEST(large_and_impossible_sizes)
{
    fb_test *test = start();
    struct actor a = { 0 };
    uint8_t *small, *large, *next;

    visit(test, &a);
    small = allocs[_i](a.conn, 1);
    large = allocs[_i](a.conn, 1024 * 1024);
    memset(large, 1, 1024 * 1024);
    next = allocs[_i](a.conn, 1);
    *small = *next = 2;
    ck_assert_ptr_null(allocs[_i](a.conn, SIZE_MAX));
    ck_assert_ptr_null(allocs[_i](a.conn, SIZE_MAX - 15));
    ck_assert_ptr_null(allocs[_i](a.conn, SIZE_MAX / 2 + 1));
    settle(test);
    ck_assert_uint_eq(a.closings, 0); /* the caller has to do something about it */
    finish(&test);
}
END_TEST

START_TEST(without_memory_there_is_none)
{
    fb_test *test = start();
    struct actor a = { 0 };

    visit(test, &a);
    ck_assert_ptr_nonnull(fb_alloc(a.conn, 1));
    fb_test_refuse_memory(test, 0, 1);
    ck_assert_ptr_null(allocs[_i](a.conn, 100000));
    ck_assert_ptr_nonnull(allocs[_i](a.conn, 100000));
    settle(test);
    ck_assert_uint_eq(a.closings, 0);
    finish(&test);
}
END_TEST

START_TEST(each_lives_as_long_as_it_should)
{
    fb_test *test = start();
    struct actor a = { 0 };
    char *lasting, *temporary;

    visit(test, &a);
    fb_temp_reset(a.conn); /* of nothing */
    lasting = strcpy(fb_alloc(a.conn, 100), "lasting");
    for (int i = 0; i < 100; i++) {
        temporary = fb_temp_alloc(a.conn, 10000);
        memset(temporary, i, 10000);
        fb_temp_reset(a.conn);
    }
    ck_assert_str_eq(lasting, "lasting");
    finish(&test);
}
END_TEST

static void allocate_when_closed(struct actor *actor, fb_reason reason)
{
    (void)reason;
    memset(fb_alloc(actor->conn, 5000), 1, 5000);
    memset(fb_temp_alloc(actor->conn, 5000), 1, 5000);
}

START_TEST(it_is_there_when_it_closes)
{
    fb_test *test = start();
    struct actor a = { .closed = allocate_when_closed };

    visit(test, &a);
    fb_abort(a.conn);
    settle(test);
    ck_assert_uint_eq(a.closings, 1);
    finish(&test);
}
END_TEST

static const fb_frame_limit limit = { .most = 100, .timeout = 5000 };

/* All that a request may need, and gives back. */
static size_t serve(struct actor *actor, fb_bytes in)
{
    fb_bytes rest = in, line;

    while (fb_frame_until(actor->conn, &rest, "\n", 1, &limit, &line)) {
        char *copy = fb_temp_alloc(actor->conn, line.n + 1);

        memcpy(copy, line.p, line.n);
        memset(fb_temp_alloc(actor->conn, 3000), 0, 3000);
        fb_timer(actor->conn, 1, 1000);
        fb_set_timeout(actor->conn, 60000);
        fb_write(actor->conn, copy, line.n);
        fb_write(actor->conn, "\n", 1);
        fb_count_request(actor->conn);
        fb_temp_reset(actor->conn);
        actor->n++;
    }
    return in.n - rest.n;
}

START_TEST(a_million_requests_cost_no_memory)
{
    enum { REQUESTS = 1000000, BATCH = 5000 };
    static char batch[BATCH * 4 + 1];
    fb_test *test = start();
    struct actor a = { .data = serve };
    fb_test_peer *peer = visit(test, &a);
    uint64_t held = 0, asked = 0;

    for (int i = 0; i < BATCH; i++)
        memcpy(batch + (size_t)i * 4, "get\n", 4);
    for (int i = 0; i < REQUESTS / BATCH; i++) {
        fb_test_say(peer, batch, sizeof(batch) - 1);
        fb_test_says(peer, "pa"); /* a part of one that comes later */
        fb_test_run(test);
        fb_test_says(peer, "rt\n");
        fb_test_run(test);
        fb_test_forget(peer);
        if (i == 1) {
            held = test->memory.held;
            asked = fb_test_allocations(test);
        }
    }
    ck_assert_uint_eq(a.n, REQUESTS + REQUESTS / BATCH);
    ck_assert_uint_eq(test->memory.held, held);
    ck_assert_uint_le(fb_test_allocations(test) - asked, REQUESTS / 100);
    finish(&test);
}
END_TEST

START_TEST(a_plain_client_costs_its_slot_alone)
{
    fb_test *test = start();
    struct actor actors[50];
    fb_test_peer *peer;
    uint64_t held = test->memory.held;

    for (int i = 0; i < 50; i++) {
        actors[i] = (struct actor) { 0 };
        peer = visit(test, &actors[i]);
        fb_test_says(peer, "hello");
        fb_test_run(test);
        fb_write(actors[i].conn, "hello", 5);
        settle(test);
    }
    ck_assert_uint_le(test->memory.held - held, 2); /* what the next writer is given */
    finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, it_is_aligned_and_apart, 0, 2);
    tcase_add_loop_test(tcase, large_and_impossible_sizes, 0, 2);
    tcase_add_loop_test(tcase, without_memory_there_is_none, 0, 2);
    tcase_add_test(tcase, each_lives_as_long_as_it_should);
    tcase_add_test(tcase, it_is_there_when_it_closes);
    tcase_add_test(tcase, a_million_requests_cost_no_memory);
    tcase_add_test(tcase, a_plain_client_costs_its_slot_alone);
}

TEST_MAIN("sdk_memory", add_tests)

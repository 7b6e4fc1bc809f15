/* SPDX-License-Identifier: BSD-2-Clause */
/* fb_alloc(), fb_temp_alloc() and what a long life costs. */
#include "sdk/scripted_conn.h"

#include <string.h>

static void *(*const allocs[])(fb_conn *conn, size_t n) = { fb_alloc, fb_temp_alloc };

START_TEST(it_is_aligned_and_apart)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 };
    uint8_t *pieces[400];
    size_t sizes[400];

    scripted_conn_open(test, &a);
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
    scripted_finish(&test);
}
END_TEST

START_TEST(large_and_impossible_sizes)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 };
    uint8_t *small, *large, *next;

    scripted_conn_open(test, &a);
    small = allocs[_i](a.conn, 1);
    large = allocs[_i](a.conn, 1024 * 1024);
    memset(large, 1, 1024 * 1024);
    next = allocs[_i](a.conn, 1);
    *small = *next = 2;
    ck_assert_ptr_null(allocs[_i](a.conn, SIZE_MAX));
    ck_assert_ptr_null(allocs[_i](a.conn, SIZE_MAX - 15));
    ck_assert_ptr_null(allocs[_i](a.conn, SIZE_MAX / 2 + 1));
    ck_assert_ptr_null(allocs[_i](a.conn, (1 << 30) + 1));
    ck_assert_ptr_nonnull(strstr(
        fb_test_logged(test), "alloc() of 1073741825 bytes is refused: 1073741824 are the most"));
    scripted_settle(test);
    ck_assert_uint_eq(a.closings, 0); /* the caller has to handle the failure */
    scripted_finish(&test);
}
END_TEST

START_TEST(without_memory_there_is_none)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 };

    scripted_conn_open(test, &a);
    ck_assert_ptr_nonnull(fb_alloc(a.conn, 1));
    fb_test_refuse_memory(test, 0, 1);
    ck_assert_ptr_null(allocs[_i](a.conn, 100000));
    ck_assert_ptr_nonnull(allocs[_i](a.conn, 100000));
    scripted_settle(test);
    ck_assert_uint_eq(a.closings, 0);
    scripted_finish(&test);
}
END_TEST

START_TEST(each_lives_as_long_as_it_should)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 };
    char *lasting, *temporary;

    scripted_conn_open(test, &a);
    fb_temp_reset(a.conn); /* no bytes */
    lasting = strcpy(fb_alloc(a.conn, 100), "lasting");
    for (int i = 0; i < 100; i++) {
        temporary = fb_temp_alloc(a.conn, 10000);
        memset(temporary, i, 10000);
        fb_temp_reset(a.conn);
    }
    ck_assert_str_eq(lasting, "lasting");
    scripted_finish(&test);
}
END_TEST

static void allocate_when_closed(struct scripted_conn *script, fb_reason reason)
{
    (void)reason;
    memset(fb_alloc(script->conn, 5000), 1, 5000);
    memset(fb_temp_alloc(script->conn, 5000), 1, 5000);
}

START_TEST(it_is_there_when_it_closes)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { .closed = allocate_when_closed };

    scripted_conn_open(test, &a);
    fb_abort(a.conn);
    scripted_settle(test);
    ck_assert_uint_eq(a.closings, 1);
    scripted_finish(&test);
}
END_TEST

static const fb_frame_limit limit = { .most = 100, .timeout = 5000 };

/* Runs a request using all the memory allowed, and frees the memory. */
static size_t serve_request(struct scripted_conn *script, fb_bytes in)
{
    fb_bytes rest = in, line;

    while (fb_frame_until(script->conn, &rest, "\n", 1, &limit, &line)) {
        char *copy = fb_temp_alloc(script->conn, line.n + 1);

        memcpy(copy, line.p, line.n);
        memset(fb_temp_alloc(script->conn, 3000), 0, 3000);
        fb_timer(script->conn, 1, 1000);
        fb_set_timeout(script->conn, 60000);
        fb_write(script->conn, copy, line.n);
        fb_write(script->conn, "\n", 1);
        fb_count_request(script->conn);
        fb_temp_reset(script->conn);
        script->n++;
    }
    return in.n - rest.n;
}

START_TEST(a_million_requests_cost_no_memory)
{
    enum { REQUESTS = 1000000, BATCH = 5000 };
    static char batch[BATCH * 4 + 1];
    fb_test *test = scripted_start();
    struct scripted_conn a = { .data = serve_request };
    fb_test_peer *peer = scripted_conn_open(test, &a);
    uint64_t held = 0, asked = 0;

    scripted_share_blocks(test);
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
            held = test->memory.live;
            asked = fb_test_allocations(test);
        }
    }
    ck_assert_uint_eq(a.n, REQUESTS + REQUESTS / BATCH);
    ck_assert_uint_eq(test->memory.live, held);
    ck_assert_uint_le(fb_test_allocations(test) - asked, REQUESTS / 100);
    scripted_finish(&test);
}
END_TEST

START_TEST(a_plain_client_costs_its_slot_alone)
{
    fb_test *test = scripted_start();
    struct scripted_conn scripts[50];
    fb_test_peer *peer;
    uint64_t held = test->memory.live;

    for (int i = 0; i < 50; i++) {
        scripts[i] = (struct scripted_conn) { 0 };
        peer = scripted_conn_open(test, &scripts[i]);
        fb_test_says(peer, "hello");
        fb_test_run(test);
        fb_write(scripts[i].conn, "hello", 5);
        scripted_settle(test);
    }
    ck_assert_uint_le(test->memory.live - held, 2); /* the memory given to the next writer */
    scripted_finish(&test);
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

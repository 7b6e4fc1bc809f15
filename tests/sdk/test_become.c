/* SPDX-License-Identifier: BSD-2-Clause */
/* fb_become(): new callbacks in the middle of a connection. */
#include "sdk/scripted_conn.h"

#include <string.h>

#define UPGRADE "upgrade\n"

/* Consumes the line, and leaves the rest to `other`. */
static size_t upgrade(struct scripted_conn *script, fb_bytes in)
{
    const uint8_t *end = memchr(in.p, '\n', in.n);

    if (end == NULL)
        return 0;
    script->other->conn = script->conn;
    script->other->openings = 1;
    ck_assert_int_eq(fb_become(script->conn, &scripted_conn_ops, script->other), 0);
    script->conn = NULL;
    return (size_t)(end - in.p) + 1;
}

struct scene {
    fb_test *test;
    struct scripted_conn old, new;
    fb_test_peer *peer;
};

static void set_up(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    scene->test = scripted_start();
    scene->old.data = upgrade;
    scene->old.other = &scene->new;
    scene->peer = scripted_conn_open(scene->test, &scene->old);
}

static void finish(struct scene *scene)
{
    ck_assert_uint_eq(scene->old.closings, 0);
    scripted_finish(&scene->test);
    ck_assert_uint_eq(scene->new.closings, 1);
}

START_TEST(the_rest_of_the_input_is_handed_over)
{
    struct scene scene;

    set_up(&scene);
    fb_test_says(scene.peer, UPGRADE "first");
    fb_test_run(scene.test);
    ck_assert_uint_eq(scene.old.datas, 1);
    ck_assert_uint_eq(scene.new.datas, 1);
    ck_assert_str_eq(scene.new.last, "first");
    fb_test_says(scene.peer, "second");
    fb_test_run(scene.test);
    ck_assert_str_eq(scene.new.last, "second");
    fb_write(scene.new.conn, "hello", 5);
    scripted_settle(scene.test);
    ck_assert_str_eq(peer_heard(scene.peer), "hello");
    fb_test_shut(scene.peer);
    fb_test_run(scene.test);
    ck_assert_uint_eq(scene.new.eofs, 1);
    ck_assert_int_eq(scene.new.reason, FB_FINISHED);
    finish(&scene);
}
END_TEST

START_TEST(without_a_rest_it_goes_on_with_the_next_bytes)
{
    struct scene scene;

    set_up(&scene);
    fb_test_says(scene.peer, UPGRADE);
    fb_test_run(scene.test);
    ck_assert_uint_eq(scene.new.datas, 0);
    fb_test_says(scene.peer, "x");
    fb_test_run(scene.test);
    ck_assert_str_eq(scene.new.last, "x");
    finish(&scene);
}
END_TEST

/* The rest fills a whole receive, more than a protocol may otherwise leave. */
START_TEST(a_long_rest_is_not_too_much)
{
    static char bytes[65536 + sizeof(UPGRADE)];
    struct scene scene;

    set_up(&scene);
    memcpy(bytes, UPGRADE, sizeof(UPGRADE) - 1);
    fb_test_say(scene.peer, bytes, 5);
    fb_test_run(scene.test);
    fb_test_say(scene.peer, bytes + 5, sizeof(bytes) - 5);
    fb_test_run(scene.test);
    ck_assert_uint_eq(fb_received(scene.new.conn), sizeof(bytes));
    ck_assert_uint_gt(scene.new.datas, 0);
    ck_assert_uint_eq(scene.new.closings, 0);
    finish(&scene);
}
END_TEST

static size_t leave_all(struct scripted_conn *script, fb_bytes in)
{
    (void)script;
    (void)in;
    return 0;
}

/* From a timer, with input left by the old callbacks. */
START_TEST(input_that_was_left_before_is_handed_over)
{
    struct scene scene;

    set_up(&scene);
    scene.old.data = leave_all;
    fb_test_says(scene.peer, "left");
    fb_test_run(scene.test);
    if (_i == 1)
        fb_stop(scene.old.conn);
    scene.new.conn = scene.old.conn;
    scene.new.openings = 1;
    ck_assert_int_eq(fb_become(scene.old.conn, &scripted_conn_ops, &scene.new), 0);
    scripted_settle(scene.test);
    if (_i == 1) { /* a stop stays */
        ck_assert_uint_eq(scene.new.datas, 0);
        fb_resume(scene.new.conn);
        scripted_settle(scene.test);
    }
    ck_assert_str_eq(scene.new.last, "left");
    ck_assert_uint_eq(scene.new.datas, 1);
    finish(&scene);
}
END_TEST

START_TEST(timers_end_and_the_rest_stays)
{
    struct scene scene;
    fb_ref ref;
    char *memory;

    set_up(&scene);
    ref = fb_ref_of(scene.old.conn);
    memory = fb_alloc(scene.old.conn, 4);
    memcpy(memory, "kept", 4);
    fb_timer(scene.old.conn, 1, 1000);
    fb_set_timeout(scene.old.conn, 5000);
    fb_test_says(scene.peer, UPGRADE);
    fb_test_run(scene.test);
    ck_assert_ptr_eq(fb_find(fb_test_worker(scene.test), ref), scene.new.conn);
    fb_timer(scene.new.conn, 2, 2000);
    fb_test_pass(scene.test, 4999);
    ck_assert_uint_eq(scene.old.timers, 0);
    ck_assert_uint_eq(scene.new.timers, 1);
    ck_assert_uint_eq(scene.new.timer_id, 2);
    ck_assert_mem_eq(memory, "kept", 4);
    ck_assert_uint_eq(scene.new.closings, 0);
    fb_test_pass(scene.test, 1);
    ck_assert_int_eq(scene.new.reason, FB_TIMED_OUT);
    finish(&scene);
}
END_TEST

START_TEST(a_drain_is_told_to_the_new_ones)
{
    struct scene scene;

    set_up(&scene);
    if (_i / 2 == 1) /* the old connection's own operations come in between */
        fb_set_receive_timeout(scene.old.conn, 60000);
    if (_i % 2 == 0)
        fb_test_drain(scene.test, 5000);
    fb_test_says(scene.peer, UPGRADE);
    fb_test_run(scene.test);
    if (_i % 2 == 1)
        fb_test_drain(scene.test, 5000);
    fb_test_pass(scene.test, 100);
    ck_assert_uint_eq(scene.old.drainings, _i % 2 == 0);
    ck_assert_uint_eq(scene.new.drainings, 1);
    ck_assert_uint_ge(scene.new.deadline, 4900);
    finish(&scene);
}
END_TEST

START_TEST(a_connection_to_a_server_is_found_by_its_first_callbacks)
{
    fb_test *test = scripted_start();
    struct scripted_conn client = { 0 }, login = { 0 }, use = { .openings = 1 }, next = { 0 };
    fb_test_peer *server;

    scripted_conn_open(test, &client);
    server = scripted_conn_connect(test, &client, &login);
    use.conn = login.conn;
    ck_assert_int_eq(fb_become(login.conn, &scripted_conn_other_ops, &use), 0);
    fb_test_says(server, "row");
    scripted_settle(test);
    ck_assert_str_eq(use.last, "row");
    fb_keep(use.conn, 10000);
    scripted_settle(test);
    ck_assert_int_eq(use.reason, FB_FINISHED);
    scripted_conn_begin(&client, &next, SERVER);
    ck_assert(fb_is_reused(next.conn));
    scripted_settle(test);
    ck_assert_uint_eq(next.openings, 1);
    scripted_finish(&test);
    ck_assert_uint_eq(login.closings, 0);
    ck_assert_uint_eq(next.closings, 1);
}
END_TEST

START_TEST(before_the_server_has_answered)
{
    fb_test *test = scripted_start();
    struct scripted_conn client = { 0 }, first = { 0 }, then = { 0 };

    scripted_conn_open(test, &client);
    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    scripted_conn_begin(&client, &first, _i == 0 ? SERVER : "10.0.0.9:9");
    ck_assert_int_eq(fb_become(first.conn, &scripted_conn_other_ops, &then), 0);
    scripted_settle(test);
    ck_assert_uint_eq(first.openings + first.closings, 0);
    ck_assert_uint_eq(then.openings, _i == 0);
    ck_assert_uint_eq(then.closings, _i == 1);
    scripted_finish(&test);
}
END_TEST

static void become_again(struct scripted_conn *script, fb_reason reason)
{
    (void)reason;
    ck_assert_int_eq(fb_become(script->conn, &scripted_conn_other_ops, NULL), -1);
}

START_TEST(not_from_closed)
{
    struct scene scene;

    set_up(&scene);
    scene.old.closed = become_again;
    fb_test_reset(scene.peer);
    fb_test_run(scene.test);
    ck_assert_uint_eq(scene.old.closings, 1);
    scripted_finish(&scene.test);
}
END_TEST

START_TEST(without_memory_nothing_changes)
{
    struct scene scene;

    set_up(&scene);
    fb_test_refuse_memory(scene.test, 0, 1);
    ck_assert_int_eq(fb_become(scene.old.conn, &scripted_conn_ops, &scene.new), -1);
    scripted_settle(scene.test);
    ck_assert_int_eq(scene.old.reason, FB_NO_MEMORY);
    ck_assert_uint_eq(scene.new.closings, 0);
    scripted_finish(&scene.test);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, the_rest_of_the_input_is_handed_over);
    tcase_add_test(tc, without_a_rest_it_goes_on_with_the_next_bytes);
    tcase_add_test(tc, a_long_rest_is_not_too_much);
    tcase_add_loop_test(tc, input_that_was_left_before_is_handed_over, 0, 2);
    tcase_add_test(tc, timers_end_and_the_rest_stays);
    tcase_add_loop_test(tc, a_drain_is_told_to_the_new_ones, 0, 4);
    tcase_add_test(tc, a_connection_to_a_server_is_found_by_its_first_callbacks);
    tcase_add_loop_test(tc, before_the_server_has_answered, 0, 2);
    tcase_add_test(tc, not_from_closed);
    tcase_add_test(tc, without_memory_nothing_changes);
}

TEST_MAIN("become", add_tests)

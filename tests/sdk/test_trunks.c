/* SPDX-License-Identifier: BSD-2-Clause */
/* Equal connections: keys, limits, queues, age, and attached pointers. */
#include "sdk/scripted_conn.h"

#include <arpa/inet.h>
#include <string.h>

#define DATABASE "10.0.0.1:80"

struct scene {
    fb_test *test;
    fb_test_server *server;
    struct scripted_conn client;
    const fb_target *target;
};

static void set_up(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    scene->test = scripted_start();
    scene->server = fb_test_serve(scene->test, DATABASE, FB_TEST_ACCEPTS);
    scripted_conn_open(scene->test, &scene->client);
    scene->target = fb_make_target(scene->client.conn, DATABASE);
}

static unsigned tries(const struct scene *scene)
{
    return scene->server->server->tries;
}

static fb_conn *ask(
    struct scene *scene, struct scripted_conn *script, const fb_connect_options *options)
{
    *script = (struct scripted_conn) { .closed = script->closed, .opened = script->opened };
    script->conn = fb_connect_with(
        fb_test_worker(scene->test), scene->target, &scripted_conn_ops, script, options);
    return script->conn;
}

#define WITH(...)                                                                                  \
    &(fb_connect_options)                                                                          \
    {                                                                                              \
        .size = sizeof(fb_connect_options), __VA_ARGS__                                            \
    }
#define KEY(text) .key = (text), .key_n = sizeof(text) - 1

static void keep(struct scene *scene, struct scripted_conn *script)
{
    scripted_settle(scene->test);
    fb_keep(script->conn, 10000);
    scripted_settle(scene->test);
    ck_assert_uint_eq(script->closings, 1);
}

START_TEST(a_key_finds_its_own)
{
    struct sockaddr_in local = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000207) };
    const fb_connect_options others[] = {
        { .size = sizeof(others[0]), KEY("ann") },
        { .size = sizeof(others[0]), KEY("bob\0x") },
        { .size = sizeof(others[0]), KEY("bob"), .receive_buffer = 4096 },
        { .size = sizeof(others[0]), KEY("bob"), .local = (struct sockaddr *)&local },
        { .size = sizeof(others[0]), KEY("bob"), .flags = FB_CONNECT_TCP_KEEPALIVE },
        { .size = sizeof(others[0]) },
    };
    struct scripted_conn a = { 0 }, b = { 0 };
    struct scene scene;

    set_up(&scene);
    ask(&scene, &a, WITH(KEY("bob")));
    keep(&scene, &a);
    ask(&scene, &b, &others[_i]);
    ck_assert(!fb_is_reused(b.conn));
    keep(&scene, &b);
    ck_assert_uint_eq(tries(&scene), 2);
    ask(&scene, &a, WITH(KEY("bob"), .owner = scene.client.conn));
    ck_assert(fb_is_reused(a.conn));
    ask(&scene, &b, &others[_i]);
    ck_assert(fb_is_reused(b.conn));
    scripted_settle(scene.test);
    ck_assert_uint_eq(a.openings + b.openings, 2);
    ck_assert_uint_eq(tries(&scene), 2);
    scripted_finish(&scene.test);
}
END_TEST

/* fb_connect() shares a connection with users without such options. */
START_TEST(without_a_key_as_always)
{
    struct scripted_conn a = { 0 }, b = { 0 };
    struct scene scene;

    set_up(&scene);
    ask(&scene, &a, _i == 0 ? NULL : WITH(.owner = scene.client.conn));
    keep(&scene, &a);
    ck_assert_ptr_nonnull(scripted_conn_begin(&scene.client, &b, DATABASE));
    ck_assert(fb_is_reused(b.conn));
    keep(&scene, &b);
    ask(&scene, &a, NULL);
    ck_assert(fb_is_reused(a.conn));
    scripted_settle(scene.test);
    scripted_finish(&scene.test);
}
END_TEST

/* ---- Limit and queue ---- */

static void ignore_release(void *p)
{
    (void)p;
}

#define TWO .limit = 2, .queue = 3, KEY("bob")

START_TEST(they_wait_in_turn)
{
    struct scripted_conn a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 }, e = { 0 }, f = { 0 };
    struct scene scene;

    set_up(&scene);
    ask(&scene, &a, WITH(TWO));
    ask(&scene, &b, WITH(TWO));
    ck_assert_ptr_nonnull(ask(&scene, &c, WITH(TWO)));
    ck_assert_ptr_nonnull(ask(&scene, &d, WITH(TWO)));
    ck_assert_ptr_nonnull(ask(&scene, &e, WITH(TWO)));
    ck_assert_ptr_null(ask(&scene, &f, WITH(TWO)));
    ck_assert_ptr_nonnull(ask(&scene, &f, WITH(.limit = 2, KEY("ann"))));
    scripted_settle(scene.test);
    ck_assert_uint_eq(a.openings + b.openings + f.openings, 3);
    ck_assert_uint_eq(c.openings + d.openings + e.openings, 0);
    fb_write(c.conn, "written early", 13);
    scripted_settle(scene.test);
    if (_i == 0) { /* the place is free */
        fb_close(b.conn);
        scripted_settle(scene.test);
        ck_assert(!fb_is_reused(c.conn));
        ck_assert_uint_eq(tries(&scene), 4);
    } else { /* the connection is given itself */
        ck_assert_int_eq(fb_attach(b.conn, &b, ignore_release), 0);
        keep(&scene, &b);
        ck_assert(fb_is_reused(c.conn));
        ck_assert_ptr_eq(fb_attached(c.conn), &b);
        ck_assert_uint_eq(tries(&scene), 3);
    }
    ck_assert_uint_eq(c.openings, 1);
    ck_assert_uint_eq(d.openings + e.openings, 0);
    fb_close(c.conn);
    fb_close(a.conn);
    scripted_settle(scene.test);
    ck_assert_uint_eq(d.openings + e.openings, 2);
    scripted_finish(&scene.test);
}
END_TEST

START_TEST(what_was_written_is_sent)
{
    struct scripted_conn a = { 0 }, b = { 0 };
    struct scene scene;
    fb_test_peer *peer;

    set_up(&scene);
    ask(&scene, &a, WITH(.limit = 1, .queue = 1));
    scripted_settle(scene.test);
    peer = fb_test_accept(scene.server);
    ask(&scene, &b, WITH(.limit = 1, .queue = 1));
    fb_write(b.conn, "early", 5);
    if (_i == 1)
        fb_close(b.conn);
    scripted_settle(scene.test);
    fb_write(a.conn, "first, ", 7);
    keep(&scene, &a);
    ck_assert_str_eq(peer_heard(peer), "first, early");
    ck_assert_uint_eq(b.openings, _i == 0);
    ck_assert_uint_eq(b.closings, _i == 1);
    if (_i == 0) {
        fb_test_says(peer, "answer");
        fb_test_run(scene.test);
        ck_assert_str_eq(b.last, "answer");
    }
    scripted_finish(&scene.test);
}
END_TEST

static int error_seen;

static void see_error(struct scripted_conn *script, fb_reason reason)
{
    (void)reason;
    error_seen = fb_error_of(script->conn);
}

START_TEST(waiting_takes_too_long)
{
    struct scripted_conn a = { 0 }, b = { .closed = see_error };
    struct scene scene;

    set_up(&scene);
    ask(&scene, &a, WITH(.limit = 1, .queue = 1));
    ask(&scene, &b, WITH(.limit = 1, .queue = 1, .queue_timeout = 3000));
    fb_test_pass(scene.test, 2999);
    ck_assert_uint_eq(b.closings, 0);
    fb_test_pass(scene.test, 1);
    ck_assert_int_eq(b.reason, FB_TIMED_OUT);
    ck_assert_int_eq(error_seen, 110);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(scene.test),
        "no connection to the server has become free (110: Connection timed out), upstream: "));
    scripted_finish(&scene.test);
}
END_TEST

/* The time to connect begins when the place is there. */
START_TEST(then_the_server_has_its_time)
{
    struct scripted_conn a = { 0 }, b = { 0 };
    struct scene scene;

    set_up(&scene);
    ask(&scene, &a, WITH(.limit = 1, .queue = 1));
    scripted_settle(scene.test);
    ask(&scene, &b, WITH(.limit = 1, .queue = 1, .timeout = 2000));
    if (_i == 1)
        fb_set_timeout(b.conn, 2000);
    fb_test_pass(scene.test, 100000);
    fb_test_serve(scene.test, DATABASE, FB_TEST_SILENT);
    fb_close(a.conn);
    scripted_settle(scene.test);
    fb_test_pass(scene.test, 1999);
    ck_assert_uint_eq(b.closings, 0);
    fb_test_pass(scene.test, 1);
    ck_assert_int_eq(b.reason, FB_TIMED_OUT);
    scripted_finish(&scene.test);
}
END_TEST

START_TEST(the_owner_of_one_that_waits_ends)
{
    struct scripted_conn a = { 0 }, b = { 0 }, c = { 0 };
    struct scene scene;

    set_up(&scene);
    ask(&scene, &a, WITH(.limit = 1, .queue = 2));
    ask(&scene, &b, WITH(.limit = 1, .queue = 2, .owner = scene.client.conn));
    ask(&scene, &c, WITH(.limit = 1, .queue = 2));
    scripted_settle(scene.test);
    if (_i == 0)
        fb_close(scene.client.conn);
    else
        fb_abort(b.conn);
    fb_close(a.conn);
    scripted_settle(scene.test);
    ck_assert_int_eq(b.reason, FB_ABORTED);
    ck_assert_uint_eq(b.openings, 0);
    ck_assert_uint_eq(c.openings, 1);
    scripted_finish(&scene.test);
}
END_TEST

START_TEST(an_idle_one_that_its_server_closes_leaves_a_place)
{
    struct scripted_conn a = { 0 }, b = { 0 };
    struct scene scene;
    fb_test_peer *peer;

    set_up(&scene);
    ask(&scene, &a, WITH(.limit = 1, .queue = 1));
    keep(&scene, &a);
    peer = fb_test_accept(scene.server);
    fb_test_shut(peer);
    fb_test_run(scene.test);
    ask(&scene, &b, WITH(.limit = 1, .queue = 1));
    ck_assert(!fb_is_reused(b.conn));
    scripted_settle(scene.test);
    ck_assert_uint_eq(b.openings, 1);
    scripted_finish(&scene.test);
}
END_TEST

/* The idle connection is looked at first, because the kernel has reported an event. */
START_TEST(an_idle_one_that_may_have_been_closed_is_waited_for)
{
    struct scripted_conn a = { 0 }, b = { 0 };
    struct event *read;
    struct scene scene;

    set_up(&scene);
    ask(&scene, &a, WITH(.limit = 1, .queue = 1));
    read = &a.conn->source.events[EVENT_READ];
    keep(&scene, &a);
    read->ready = 1;
    loop_post_soon(&fb_test_worker(scene.test)->worker->stream.net.loop, read);
    ck_assert_ptr_nonnull(ask(&scene, &b, WITH(.limit = 1, .queue = 1)));
    ck_assert_uint_eq(b.openings, 0);
    scripted_settle(scene.test);
    ck_assert_uint_eq(b.openings, 1);
    ck_assert(fb_is_reused(b.conn));
    ck_assert_uint_eq(tries(&scene), 1);
    scripted_finish(&scene.test);
}
END_TEST

START_TEST(those_that_wait_end_with_the_worker)
{
    struct scripted_conn a = { 0 }, b = { 0 }, c = { 0 };
    struct scene scene;

    set_up(&scene);
    ask(&scene, &a, WITH(.limit = 1, .queue = 2));
    ask(&scene, &b, WITH(.limit = 1, .queue = 2));
    ask(&scene, &c, WITH(.limit = 1, .queue = 2, .owner = scene.client.conn));
    scripted_settle(scene.test);
    scripted_finish(&scene.test);
    ck_assert_uint_eq(a.closings + b.closings + c.closings, 3);
    ck_assert_int_eq(b.reason, FB_DRAINED);
}
END_TEST

/* ---- Warm, attached, old ---- */

static int releases;

static void count_release(void *p)
{
    ck_assert_str_eq(p, "prepared");
    releases++;
}

static int log_in(struct scripted_conn *script)
{
    if (fb_is_reused(script->conn))
        return 0;
    ck_assert_ptr_null(fb_attached(script->conn));
    ck_assert_int_eq(fb_attach(script->conn, (void *)"prepared", count_release), 0);
    fb_keep(script->conn, 10000);
    return 0;
}

START_TEST(warm_with_its_state)
{
    struct scripted_conn warm[2] = { { .opened = log_in }, { .opened = log_in } }, user = { 0 };
    struct scene scene;

    releases = 0;
    set_up(&scene);
    for (int i = 0; i < 2; i++)
        ask(&scene, &warm[i], WITH(KEY("bob"), .limit = 2));
    scripted_settle(scene.test);
    ck_assert_uint_eq(warm[0].closings + warm[1].closings, 2);
    ask(&scene, &user, WITH(KEY("bob"), .limit = 2, .owner = scene.client.conn));
    ck_assert(fb_is_reused(user.conn));
    ck_assert_str_eq(fb_attached(user.conn), "prepared");
    scripted_settle(scene.test);
    ck_assert_uint_eq(user.openings, 1);
    ck_assert_int_eq(releases, 0);
    fb_test_pass(scene.test, 9999);
    ck_assert_int_eq(releases, 0);
    fb_test_pass(scene.test, 1); /* the second connection has been idle for too long */
    ck_assert_int_eq(releases, 1);
    fb_close(user.conn);
    scripted_settle(scene.test);
    ck_assert_int_eq(releases, 2);
    ck_assert_uint_eq(tries(&scene), 2);
    scripted_finish(&scene.test);
}
END_TEST

/* A pointer attached to a waiting connection is released, if the replaced connection has a pointer;
 * else the first stays. */
START_TEST(attached_while_it_waits)
{
    struct scripted_conn a = { 0 }, b = { 0 };
    struct scene scene;

    releases = 0;
    set_up(&scene);
    ask(&scene, &a, WITH(.limit = 1, .queue = 1));
    ask(&scene, &b, WITH(.limit = 1, .queue = 1));
    ck_assert_int_eq(fb_attach(b.conn, (void *)"prepared", count_release), 0);
    if (_i == 0)
        fb_attach(a.conn, &a, ignore_release);
    keep(&scene, &a);
    ck_assert(fb_is_reused(b.conn));
    ck_assert_int_eq(releases, _i == 0);
    if (_i == 0)
        ck_assert_ptr_eq(fb_attached(b.conn), &a);
    else
        ck_assert_str_eq(fb_attached(b.conn), "prepared");
    fb_close(b.conn);
    scripted_settle(scene.test);
    ck_assert_int_eq(releases, 1);
    scripted_finish(&scene.test);
}
END_TEST

START_TEST(nothing_is_attached_to_a_client)
{
    struct scene scene;

    set_up(&scene);
    ck_assert_int_eq(fb_attach(scene.client.conn, NULL, count_release), -1);
    ck_assert_ptr_null(fb_attached(scene.client.conn));
    ck_assert_int_eq(fb_error_of(scene.client.conn), 0);
    scripted_finish(&scene.test);
}
END_TEST

START_TEST(an_old_one_is_not_kept)
{
    struct scripted_conn a = { 0 }, b = { 0 };
    struct scene scene;

    set_up(&scene);
    ask(&scene, &a, WITH(.age = 5000));
    fb_test_pass(scene.test, 3000);
    fb_keep(a.conn, 100000);
    fb_test_pass(scene.test, 1999);
    ask(&scene, &b, WITH(.age = 5000));
    ck_assert(fb_is_reused(b.conn));
    scripted_settle(scene.test);
    if (_i == 0) { /* while it is idle */
        fb_keep(b.conn, 100000);
        fb_test_pass(scene.test, 1);
    } else { /* while it is used */
        fb_test_pass(scene.test, 1);
        ck_assert_uint_eq(b.closings, 0);
        fb_keep(b.conn, 100000);
        scripted_settle(scene.test);
    }
    ck_assert_uint_eq(b.closings, 1);
    ask(&scene, &a, WITH(.age = 5000));
    ck_assert(!fb_is_reused(a.conn));
    scripted_settle(scene.test);
    scripted_finish(&scene.test);
}
END_TEST

START_TEST(a_key_is_too_long)
{
    static const char key[FB_KEY_MAX + 1];
    struct scripted_conn a = { 0 };
    struct scene scene;

    set_up(&scene);
    ck_assert_ptr_null(ask(&scene, &a, WITH(.key = key, .key_n = sizeof(key))));
    ck_assert_ptr_nonnull(ask(&scene, &a, WITH(.key = key, .key_n = FB_KEY_MAX)));
    scripted_settle(scene.test);
    ck_assert_uint_eq(a.openings, 1);
    scripted_finish(&scene.test);
}
END_TEST

/* Every allocation fails once: nothing is left behind. */
START_TEST(without_memory)
{
    struct scripted_conn a = { 0 }, b = { 0 };
    struct scene scene;

    set_up(&scene);
    fb_test_refuse_memory(scene.test, (uint64_t)_i, 1);
    if (ask(&scene, &a, WITH(.limit = 1, .queue = 1, KEY("bob"))) == NULL)
        a.openings = a.closings = 0;
    ask(&scene, &b, WITH(.limit = 1, .queue = 1, KEY("bob")));
    if (a.conn != NULL) {
        fb_attach(a.conn, (void *)"prepared", count_release);
        fb_ref_of(a.conn);
        keep(&scene, &a);
    }
    scripted_settle(scene.test);
    scripted_finish(&scene.test);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, a_key_finds_its_own, 0, 6);
    tcase_add_loop_test(tc, without_a_key_as_always, 0, 2);
    tcase_add_loop_test(tc, they_wait_in_turn, 0, 2);
    tcase_add_loop_test(tc, what_was_written_is_sent, 0, 2);
    tcase_add_test(tc, waiting_takes_too_long);
    tcase_add_loop_test(tc, then_the_server_has_its_time, 0, 2);
    tcase_add_loop_test(tc, the_owner_of_one_that_waits_ends, 0, 2);
    tcase_add_test(tc, an_idle_one_that_its_server_closes_leaves_a_place);
    tcase_add_test(tc, an_idle_one_that_may_have_been_closed_is_waited_for);
    tcase_add_test(tc, those_that_wait_end_with_the_worker);
    tcase_add_test(tc, warm_with_its_state);
    tcase_add_loop_test(tc, attached_while_it_waits, 0, 2);
    tcase_add_test(tc, nothing_is_attached_to_a_client);
    tcase_add_loop_test(tc, an_old_one_is_not_kept, 0, 2);
    tcase_add_test(tc, a_key_is_too_long);
    tcase_add_loop_test(tc, without_memory, 0, 10);
}

TEST_MAIN("trunks", add_tests)

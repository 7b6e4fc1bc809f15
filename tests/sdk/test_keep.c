/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers, kept between sessions. */
#include "sdk/scripted_conn.h"

#include <errno.h>
#include <string.h>

struct scene {
    fb_test *test;
    struct scripted_conn client, first, second;
    fb_test_peer *peer, *server; /* states of the client, and of the first server */
};

static void set_up(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    scene->test = scripted_start();
    scene->peer = scripted_conn_open(scene->test, &scene->client);
    scene->server = scripted_conn_connect(scene->test, &scene->client, &scene->first);
}

static unsigned tries(struct scene *scene, const char *address)
{
    return fb_test_serve(scene->test, address, FB_TEST_ACCEPTS)->server->tries;
}

static void keep_first(struct scene *scene)
{
    fb_keep(scene->first.conn, 10000);
    scripted_settle(scene->test);
    ck_assert_uint_eq(scene->first.closings, 1);
    ck_assert_int_eq(scene->first.reason, FB_FINISHED);
}

/* Whether the second connection is the first, over again. */
static bool reuses(struct scene *scene)
{
    unsigned before = tries(scene, SERVER);
    bool reused;

    ck_assert_ptr_nonnull(scripted_conn_begin(&scene->client, &scene->second, SERVER));
    reused = fb_is_reused(scene->second.conn);
    ck_assert_uint_eq(scene->second.openings, 0);
    scripted_settle(scene->test);
    ck_assert_uint_eq(scene->second.openings, 1);
    ck_assert_uint_eq(scene->second.closings, 0);
    ck_assert_uint_eq(tries(scene, SERVER) - before, !reused);
    return reused;
}

static void finish_scene(struct scene *scene)
{
    scripted_finish(&scene->test);
    ck_assert_uint_le(scene->second.closings, 1);
}

START_TEST(the_next_has_it)
{
    struct scene scene;

    set_up(&scene);
    keep_first(&scene);
    ck_assert(!fb_test_is_closed(scene.server));
    ck_assert(reuses(&scene));
    fb_write(scene.second.conn, "question", 8);
    scripted_settle(scene.test);
    ck_assert_str_eq(peer_heard(scene.server), "question");
    fb_test_says(scene.server, "answer");
    fb_test_run(scene.test);
    ck_assert_str_eq(scene.second.last, "answer");
    ck_assert_uint_eq(scene.first.datas, 0);
    finish_scene(&scene);
}
END_TEST

static void talk(
    struct scene *scene, struct scripted_conn *script, const char *question, const char *answer)
{
    fb_write(script->conn, question, strlen(question));
    scripted_settle(scene->test);
    fb_test_says(scene->server, answer);
    fb_test_run(scene->test);
}

/* The line about the end of a session adds up the bytes moved by its connections to servers: the
 * two users of the connection have separate bytes. */
START_TEST(its_bytes_are_logged)
{
    struct scripted_conn other = { 0 };
    struct scene scene;
    const char *log;

    set_up(&scene);
    talk(&scene, &scene.first, "question", "answer");
    keep_first(&scene);
    scripted_conn_open(scene.test, &other);
    scripted_conn_begin(&other, &scene.second, SERVER);
    ck_assert(fb_is_reused(scene.second.conn));
    scripted_settle(scene.test);
    talk(&scene, &scene.second, "one", "");
    talk(&scene, &scene.second, "more", "yes");
    ck_assert_ptr_nonnull(scripted_conn_connect(scene.test, &other, &scene.first));
    fb_write(scene.first.conn, "x", 1);
    fb_close(other.conn);
    scripted_settle(scene.test);
    fb_close(scene.client.conn);
    scripted_settle(scene.test);
    log = fb_test_logged(scene.test);
    ck_assert_ptr_nonnull(
        strstr(log, "*1 client disconnected, bytes from/to client:0/0, bytes from/to upstream:6/8, "
                    "session time: 0.000, reason: finished, client: "));
    ck_assert_ptr_nonnull(
        strstr(log, "client disconnected, bytes from/to client:0/0, bytes from/to upstream:3/8, "
                    "session time: 0.000, reason: finished, client: "));
    finish_scene(&scene);
}
END_TEST

START_TEST(it_is_as_new)
{
    struct scene scene;
    fb_ref old;

    set_up(&scene);
    fb_timer(scene.first.conn, 1, 2000);
    fb_set_timeout(scene.first.conn, 3000);
    fb_set_idle(scene.first.conn, 1);
    memset(fb_alloc(scene.first.conn, 5000), 1, 5000);
    old = fb_ref_of(scene.first.conn);
    fb_write(scene.first.conn, "hello", 5);
    fb_stop(scene.first.conn);
    scripted_settle(scene.test);
    keep_first(&scene);
    ck_assert_ptr_null(fb_find(fb_test_worker(scene.test), old));
    ck_assert(reuses(&scene));
    ck_assert_uint_ne(fb_ref_of(scene.second.conn), old);
    ck_assert_uint_eq(fb_sent(scene.second.conn) + fb_received(scene.second.conn), 0);
    fb_test_pass(scene.test, 100000);
    ck_assert_uint_eq(scene.first.timers + scene.second.timers, 0);
    ck_assert_uint_eq(scene.second.closings, 0);
    fb_test_says(scene.server, "heard");
    fb_test_run(scene.test);
    ck_assert_uint_eq(scene.second.datas, 1);
    finish_scene(&scene);
}
END_TEST

START_TEST(it_is_for_another_client_too)
{
    struct scene scene;
    struct scripted_conn other = { 0 };

    set_up(&scene);
    fb_keep(scene.first.conn, 10000);
    fb_close(scene.client.conn); /* with which it does not end */
    scripted_settle(scene.test);
    ck_assert_uint_eq(scene.client.closings, 1);
    ck_assert_int_eq(scene.first.reason, FB_FINISHED);
    scripted_conn_open(scene.test, &other);
    scripted_conn_begin(&other, &scene.second, SERVER);
    ck_assert(fb_is_reused(scene.second.conn));
    scripted_settle(scene.test);
    fb_abort(other.conn); /* with this one it does */
    scripted_settle(scene.test);
    ck_assert_int_eq(scene.second.reason, FB_ABORTED);
    ck_assert(fb_test_was_reset(scene.server));
    finish_scene(&scene);
}
END_TEST

START_TEST(it_is_not_for_all)
{
    struct scene scene;
    const fb_target *target;

    set_up(&scene);
    keep_first(&scene);
    fb_test_serve(scene.test, "10.0.0.1:81", FB_TEST_ACCEPTS);
    target = fb_make_target(scene.client.conn, _i == 0 ? "10.0.0.1:81" : SERVER);
    scene.second.conn = fb_connect(scene.client.conn, target,
        _i == 0 ? &scripted_conn_ops : &scripted_conn_other_ops, &scene.second);
    ck_assert(!fb_is_reused(scene.second.conn));
    scripted_settle(scene.test);
    ck_assert_uint_eq(scene.second.openings, 1);
    ck_assert(!fb_test_is_closed(scene.server));
    finish_scene(&scene);
}
END_TEST

START_TEST(it_is_kept_once_its_output_has_left)
{
    struct scene scene;

    set_up(&scene);
    fb_test_take(scene.server, 2);
    fb_write(scene.first.conn, "last words", 10);
    fb_keep(scene.first.conn, 10000);
    fb_write(scene.first.conn, "too late", 8);
    scripted_settle(scene.test);
    ck_assert_uint_eq(scene.first.closings, 0);
    ck_assert(!reuses(&scene)); /* in use still */
    fb_test_take(scene.server, SIZE_MAX);
    ck_assert_str_eq(peer_heard(scene.server), "last words");
    ck_assert_int_eq(scene.first.reason, FB_FINISHED);
    ck_assert(!fb_test_is_closed(scene.server));
    finish_scene(&scene);
}
END_TEST

/* ---- What is not kept ---- */

static size_t keep_with_a_rest(struct scripted_conn *script, fb_bytes in)
{
    fb_keep(script->conn, 10000);
    return in.n - 1;
}

static void leave_input_before(struct scene *scene)
{
    scene->first.data = scripted_leave_input;
    fb_test_says(scene->server, "unconsumed");
    fb_test_run(scene->test);
    fb_keep(scene->first.conn, 10000);
}

static void leave_input_now(struct scene *scene)
{
    scene->first.data = keep_with_a_rest;
    fb_test_says(scene->server, "unconsumed");
}

static void leave_input_of_slow_one(struct scene *scene)
{
    fb_test_take(scene->server, 0);
    fb_write(scene->first.conn, "unsent", 6);
    scripted_settle(scene->test);
    leave_input_now(scene);
    fb_test_run(scene->test);
    fb_test_take(scene->server, SIZE_MAX);
}

static void keep_after_end(struct scene *scene)
{
    scene->first.eof = scripted_ignore_eof;
    fb_test_shut(scene->server);
    fb_test_run(scene->test);
    fb_keep(scene->first.conn, 10000);
}

static void keep_after_shutdown(struct scene *scene)
{
    fb_shutdown(scene->first.conn);
    fb_keep(scene->first.conn, 10000);
}

static void keep_a_closing_one(struct scene *scene)
{
    fb_close(scene->first.conn);
    fb_keep(scene->first.conn, 10000);
}

static void keep_while_draining(struct scene *scene)
{
    fb_test_drain(scene->test, 0);
    fb_keep(scene->first.conn, 10000);
}

static void (*const not_kept[])(struct scene *scene) = { leave_input_before, leave_input_now,
    leave_input_of_slow_one, keep_after_end, keep_after_shutdown, keep_a_closing_one,
    keep_while_draining };

START_TEST(it_is_closed_instead)
{
    struct scene scene;

    set_up(&scene);
    not_kept[_i](&scene);
    scripted_settle(scene.test);
    ck_assert_uint_eq(scene.first.closings, 1);
    ck_assert_int_eq(scene.first.reason, FB_FINISHED);
    ck_assert(fb_test_is_closed(scene.server));
    ck_assert(!reuses(&scene));
    finish_scene(&scene);
}
END_TEST

START_TEST(what_cannot_be_kept_is_closed)
{
    struct scene scene;

    set_up(&scene);
    fb_test_serve(scene.test, SERVER, FB_TEST_SILENT);
    scripted_conn_begin(&scene.client, &scene.second, SERVER);
    fb_keep(scene.second.conn, 10000); /* no connection yet */
    scripted_settle(scene.test);
    ck_assert_uint_eq(scene.second.openings, 0);
    ck_assert_int_eq(scene.second.reason, FB_FINISHED);
    fb_keep(scene.client.conn, 10000); /* a client's */
    scripted_settle(scene.test);
    ck_assert_int_eq(scene.client.reason, FB_FINISHED);
    finish_scene(&scene);
}
END_TEST

/* ---- What ends it ---- */

static void server_ends(struct scene *scene)
{
    fb_test_shut(scene->server);
}

static void server_breaks(struct scene *scene)
{
    fb_test_reset(scene->server);
}

static void server_speaks(struct scene *scene)
{
    fb_test_says(scene->server, "unexpected");
}

static void time_passes(struct scene *scene)
{
    fb_test_pass(scene->test, 9999);
    ck_assert(!fb_test_is_closed(scene->server));
    fb_test_pass(scene->test, 1);
}

static void worker_drains(struct scene *scene)
{
    fb_test_drain(scene->test, 0);
}

static void (*const what_ends_it[])(struct scene *scene) = { server_ends, server_breaks,
    server_speaks, time_passes, worker_drains };

/* The end of an idle connection is silent, and the next connection is a new one. */
START_TEST(it_ends_while_it_is_kept)
{
    struct scene scene;

    set_up(&scene);
    keep_first(&scene);
    what_ends_it[_i](&scene);
    scripted_settle(scene.test);
    ck_assert(fb_test_is_closed(scene.server));
    ck_assert_uint_eq(scene.first.closings, 1);
    ck_assert_uint_eq(scene.first.datas + scene.first.eofs, 0);
    ck_assert(!reuses(&scene));
    finish_scene(&scene);
}
END_TEST

static size_t connect_second(struct scripted_conn *script, fb_bytes in)
{
    scripted_conn_begin(script, script->other, SERVER);
    return in.n;
}

/* Events of both come in a single turn: bytes sent to nobody are not taken for an answer. */
START_TEST(it_ends_in_the_turn_in_which_it_is_wanted)
{
    struct scene scene;

    set_up(&scene);
    keep_first(&scene);
    scene.client.data = connect_second;
    scene.client.other = &scene.second;
    fb_test_says(scene.peer, "connect");
    what_ends_it[_i](&scene);
    fb_test_run(scene.test);
    ck_assert_uint_eq(scene.second.openings, 1);
    ck_assert_uint_eq(scene.second.datas + scene.second.eofs + scene.second.closings, 0);
    ck_assert(fb_test_is_closed(scene.server));
    finish_scene(&scene);
}
END_TEST

/* A connection waiting for its output when the drain begins is not kept either. */
START_TEST(one_that_waits_when_the_drain_begins)
{
    struct scene scene;

    set_up(&scene);
    fb_test_take(scene.server, 0);
    fb_write(scene.first.conn, "unsent", 6);
    fb_keep(scene.first.conn, 10000);
    scripted_settle(scene.test);
    fb_test_drain(scene.test, 0);
    fb_test_take(scene.server, SIZE_MAX);
    fb_test_run(scene.test);
    ck_assert_int_eq(scene.first.reason, FB_FINISHED);
    ck_assert(fb_test_is_closed(scene.server));
    finish_scene(&scene);
}
END_TEST

static void write_when_closed(struct scripted_conn *script, fb_reason reason)
{
    struct scripted_conn *none = script->other;

    (void)reason;
    fb_write(script->conn, "late", 4);
    fb_timer(script->conn, 1, 10);
    ck_assert_ptr_null(scripted_conn_begin(script, none, SERVER));
}

START_TEST(closed_leaves_nothing_behind)
{
    struct scene scene;
    struct scripted_conn none = { 0 };

    set_up(&scene);
    scene.first.closed = write_when_closed;
    scene.first.other = &none;
    keep_first(&scene);
    fb_test_pass(scene.test, 100);
    ck_assert_str_eq(peer_heard(scene.server), "");
    ck_assert_uint_eq(scene.first.timers, 0);
    ck_assert(reuses(&scene));
    finish_scene(&scene);
}
END_TEST

START_TEST(connections_made_for_it_end)
{
    struct scene scene;
    struct scripted_conn child = { .letter = 'c' };
    fb_test_peer *peer;

    set_up(&scene);
    scene.first.letter = 'f';
    peer = scripted_conn_connect(scene.test, &scene.first, &child);
    keep_first(&scene);
    ck_assert_str_eq(ended, "cf");
    ck_assert(fb_test_is_closed(peer));
    ck_assert(!fb_test_is_closed(scene.server));
    finish_scene(&scene);
}
END_TEST

START_TEST(kept_a_thousand_times_it_costs_no_more)
{
    struct scene scene;
    uint64_t held = 0;

    set_up(&scene);
    scripted_share_blocks(scene.test);
    keep_first(&scene);
    for (int i = 0; i < 1000; i++) {
        scene.second = (struct scripted_conn) { 0 };
        ck_assert(reuses(&scene));
        fb_timer(scene.second.conn, 1, 1000);
        memset(fb_alloc(scene.second.conn, 10000), 1, 10000);
        fb_keep(scene.second.conn, 10000);
        scripted_settle(scene.test);
        ck_assert_int_eq(scene.second.reason, FB_FINISHED);
        if (i == 10)
            held = scene.test->memory.live;
    }
    /* the client owns the targets of the connects */
    ck_assert_uint_le(scene.test->memory.live - held, 200);
    finish_scene(&scene);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_next_has_it);
    tcase_add_test(tcase, its_bytes_are_logged);
    tcase_add_test(tcase, it_is_as_new);
    tcase_add_test(tcase, it_is_for_another_client_too);
    tcase_add_loop_test(tcase, it_is_not_for_all, 0, 2);
    tcase_add_test(tcase, it_is_kept_once_its_output_has_left);
    tcase_add_loop_test(tcase, it_is_closed_instead, 0, countof(not_kept));
    tcase_add_test(tcase, what_cannot_be_kept_is_closed);
    tcase_add_loop_test(tcase, it_ends_while_it_is_kept, 0, countof(what_ends_it));
    tcase_add_loop_test(tcase, it_ends_in_the_turn_in_which_it_is_wanted, 0, 3);
    tcase_add_test(tcase, one_that_waits_when_the_drain_begins);
    tcase_add_test(tcase, closed_leaves_nothing_behind);
    tcase_add_test(tcase, connections_made_for_it_end);
    tcase_add_test(tcase, kept_a_thousand_times_it_costs_no_more);
}

TEST_MAIN("sdk_keep", add_tests)

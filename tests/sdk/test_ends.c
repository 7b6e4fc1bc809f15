/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends of related connections: a single notice, to an owned connection before its owner. */
#include "sdk/scripted_conn.h"

#include <errno.h>
#include <string.h>

enum { OWNER, CHILD, SECOND, GRANDCHILD, FAMILY };

struct family {
    fb_test *test;
    struct scripted_conn scripts[FAMILY];
    fb_test_peer *client, *servers[FAMILY];
};

/* An owner with two connections; the first owns a connection too. */
static void set_up(struct family *family)
{
    memset(family, 0, sizeof(*family));
    family->test = scripted_start();
    for (int i = 0; i < FAMILY; i++)
        family->scripts[i].letter = "Oabc"[i];
    family->client = scripted_conn_open(family->test, &family->scripts[OWNER]);
    family->servers[CHILD] =
        scripted_conn_connect(family->test, &family->scripts[OWNER], &family->scripts[CHILD]);
    family->servers[SECOND] =
        scripted_conn_connect(family->test, &family->scripts[OWNER], &family->scripts[SECOND]);
    family->servers[GRANDCHILD] =
        scripted_conn_connect(family->test, &family->scripts[CHILD], &family->scripts[GRANDCHILD]);
}

static void close_owner(struct family *family)
{
    fb_close(family->scripts[OWNER].conn);
}

static void abort_owner(struct family *family)
{
    fb_abort(family->scripts[OWNER].conn);
}

static void reset_owner(struct family *family)
{
    fb_test_reset(family->client);
}

static void end_owner(struct family *family)
{
    fb_test_shut(family->client);
}

static void end_both_halves(struct family *family)
{
    fb_shutdown(family->scripts[OWNER].conn);
    family->scripts[OWNER].eof = scripted_ignore_eof;
    fb_test_shut(family->client);
}

static void drain_worker(struct family *family)
{
    net_fail_all(&family->test->workers->worker.stream.net, FB_DRAINED);
}

static void start_lingering(struct family *family)
{
    fb_stop(family->scripts[OWNER].conn);
    fb_test_says(family->client, "unread");
    fb_close(family->scripts[OWNER].conn);
}

static const struct {
    void (*end)(struct family *family);
    fb_reason owner, children;
} ways[] = {
    { close_owner, FB_FINISHED, FB_ABORTED },
    { abort_owner, FB_ABORTED, FB_ABORTED },
    { reset_owner, FB_RESET, FB_ABORTED },
    { end_owner, FB_FINISHED, FB_ABORTED },
    { end_both_halves, FB_FINISHED, FB_ABORTED },
    { drain_worker, FB_DRAINED, FB_DRAINED },
    { start_lingering, FB_FINISHED, FB_ABORTED },
};

START_TEST(with_its_owner_a_connection_ends)
{
    struct family family;

    set_up(&family);
    ways[_i].end(&family);
    scripted_settle(family.test);
    for (int i = 0; i < FAMILY; i++) {
        ck_assert_uint_eq(family.scripts[i].closings, 1);
        ck_assert_int_eq(family.scripts[i].reason, i == OWNER ? ways[_i].owner : ways[_i].children);
    }
    ck_assert_uint_eq(strlen(ended), FAMILY);
    ck_assert_int_eq(ended[FAMILY - 1], 'O');
    ck_assert(strchr(ended, 'c') < strchr(ended, 'a'));
    scripted_finish(&family.test);
}
END_TEST

START_TEST(without_it_its_owner_goes_on)
{
    struct family family;

    set_up(&family);
    fb_abort(family.scripts[CHILD].conn);
    scripted_settle(family.test);
    ck_assert_str_eq(ended, "ca");
    fb_test_says(family.client, "still here");
    fb_test_says(family.servers[SECOND], "here too");
    fb_test_run(family.test);
    ck_assert_str_eq(family.scripts[OWNER].last, "still here");
    ck_assert_str_eq(family.scripts[SECOND].last, "here too");
    scripted_finish(&family.test);
}
END_TEST

/* A session already finished reports it. */
START_TEST(a_child_that_has_finished)
{
    struct family family;

    set_up(&family);
    fb_close(family.scripts[OWNER].conn); /* comes first */
    fb_close(family.scripts[SECOND].conn);
    fb_test_reset(family.servers[CHILD]);
    scripted_settle(family.test);
    ck_assert_int_eq(family.scripts[SECOND].reason, FB_FINISHED);
    scripted_finish(&family.test);
}
END_TEST

/* ---- What `closed` does ---- */

static unsigned tries;

static void try_again(struct scripted_conn *script, fb_reason reason)
{
    struct scripted_conn *owner = script->other;
    static struct scripted_conn next;

    (void)reason;
    ck_assert_ptr_eq(fb_worker_of(owner->conn), fb_worker_of(script->conn));
    if (++tries > 3)
        return;
    next = (struct scripted_conn) { .closed = try_again, .other = owner };
    scripted_conn_begin(owner, &next, SERVER);
}

/* The end of an owner, by any cause, ends the tries for it. */
START_TEST(nothing_is_begun_for_an_owner_that_ends)
{
    struct family family;

    set_up(&family);
    tries = 0;
    family.scripts[SECOND].closed = try_again;
    family.scripts[SECOND].other = &family.scripts[OWNER];
    ways[_i].end(&family);
    scripted_settle(family.test);
    ck_assert_uint_eq(family.scripts[OWNER].closings, 1);
    if (ways[_i].end != drain_worker) /* ends where the child may come first */
        ck_assert_uint_eq(tries, 1);
    scripted_finish(&family.test);
}
END_TEST

static void connect_when_closed(struct scripted_conn *script, fb_reason reason)
{
    static struct scripted_conn next;

    (void)reason;
    next = (struct scripted_conn) { 0 };
    ck_assert_ptr_null(scripted_conn_begin(script, &next, SERVER));
}

START_TEST(who_is_closed_connects_no_more)
{
    struct family family;

    set_up(&family);
    family.scripts[OWNER].closed = connect_when_closed;
    ways[_i].end(&family);
    scripted_settle(family.test);
    ck_assert_uint_eq(family.scripts[OWNER].closings, 1);
    scripted_finish(&family.test);
}
END_TEST

static unsigned releases;

static void note_release(void *arg)
{
    (void)arg;
    releases++;
}

/* Calls allowed at the end, without effect. */
static void try_everything(struct scripted_conn *script, fb_reason reason)
{
    static const fb_bytes pieces[] = { { (const uint8_t *)"x", 1 }, { (const uint8_t *)"y", 1 } };
    fb_conn *conn = script->conn;

    (void)reason;
    fb_write(conn, "x", 1);
    fb_writev(conn, pieces, 2);
    ck_assert_int_eq(fb_write_ref(conn, "x", 1, note_release, NULL), -1);
    ck_assert_int_eq(fb_send_file(conn, 0, 0, 1), -1);
    fb_flush(conn);
    fb_stop(conn);
    fb_resume(conn);
    fb_shutdown(conn);
    fb_set_timeout(conn, 1);
    fb_timer(conn, 1, 1);
    fb_set_idle(conn, 1);
    fb_alloc(conn, 100);
    fb_temp_alloc(conn, 100);
    fb_temp_reset(conn);
    fb_keep(conn, 100);
    ck_assert_uint_eq(fb_unsent(conn), 0);
    if (script->other->conn != NULL)
        fb_pipe(conn, script->other->conn, NULL);
    fb_send_message(conn, fb_ref_of(conn), "x", 1);
    fb_close(conn);
    fb_abort(conn);
}

START_TEST(closed_may_call_everything)
{
    struct family family;

    set_up(&family);
    releases = 0;
    for (int i = 0; i < FAMILY; i++) {
        family.scripts[i].closed = try_everything;
        family.scripts[i].other = &family.scripts[(i + 1) % FAMILY];
    }
    ways[_i].end(&family);
    scripted_settle(family.test);
    fb_test_pass(family.test, 10000);
    for (int i = 0; i < FAMILY; i++) {
        ck_assert_uint_eq(family.scripts[i].closings, 1);
        ck_assert_uint_eq(family.scripts[i].timers + family.scripts[i].messages, 0);
    }
    ck_assert_uint_eq(releases, 0);
    ck_assert_str_eq(peer_heard(family.client), "");
    scripted_finish(&family.test);
}
END_TEST

/* ---- Calls on a connection that has ended ---- */

static unsigned misuses;
static char misused_call[64];

static void note_misuse(struct stream *stream, const char *call)
{
    (void)stream;
    misuses++;
    snprintf(misused_call, sizeof(misused_call), "%s", call);
}

static void forget_read(fb_conn *conn, void *state, const fb_file_read *read)
{
    (void)conn;
    (void)state;
    (void)read;
}

#define REPORTED(name, call)                                                                       \
    do {                                                                                           \
        misuses = 0;                                                                               \
        call;                                                                                      \
        ck_assert_uint_eq(misuses, 1);                                                             \
        ck_assert_str_eq(misused_call, name);                                                      \
    } while (0)

static void check_reported(fb_test *test, fb_conn *old, fb_conn *other)
{
    static const fb_ops *ops = &scripted_conn_ops;
    static const fb_frame_limit limit = { .most = 10 };
    struct sockaddr_storage address;
    fb_bytes rest = { (const uint8_t *)"x\n", 2 }, frame;
    struct scripted_conn none = { 0 };

    test->workers->worker.stream.misused = note_misuse;
    REPORTED("fb_write", fb_write(old, "x", 1));
    REPORTED("fb_writev", fb_writev(old, &rest, 1));
    REPORTED("fb_write_ref", ck_assert_int_eq(fb_write_ref(old, "x", 1, note_release, NULL), -1));
    REPORTED("fb_send_file", ck_assert_int_eq(fb_send_file(old, 0, 0, 1), -1));
    REPORTED("fb_flush", fb_flush(old));
    REPORTED("fb_read_file", ck_assert_int_eq(fb_read_file(old, 0, 0, 1, forget_read), -1));
    REPORTED("fb_aio_of", ck_assert_int_eq(fb_aio_of(old), FB_AIO_OFF));
    REPORTED("fb_unsent", ck_assert_uint_eq(fb_unsent(old), 0));
    REPORTED("fb_stop", fb_stop(old));
    REPORTED("fb_resume", fb_resume(old));
    REPORTED("fb_shutdown", fb_shutdown(old));
    REPORTED("fb_close", fb_close(old));
    REPORTED("fb_abort", fb_abort(old));
    REPORTED("fb_set_timeout", fb_set_timeout(old, 1));
    REPORTED("fb_timer", fb_timer(old, 1, 1));
    REPORTED("fb_timer_cancel", fb_timer_cancel(old, 1));
    REPORTED("fb_set_idle", fb_set_idle(old, 1));
    REPORTED("fb_alloc", ck_assert_ptr_null(fb_alloc(old, 1)));
    REPORTED("fb_temp_alloc", ck_assert_ptr_null(fb_temp_alloc(old, 1)));
    REPORTED("fb_temp_reset", fb_temp_reset(old));
    REPORTED("fb_conf_of", ck_assert_ptr_null(fb_conf_of(old)));
    REPORTED("fb_peer_address", ck_assert_int_eq(fb_peer_address(old, &address), -1));
    REPORTED("fb_local_address", ck_assert_int_eq(fb_local_address(old, &address), -1));
    REPORTED("fb_received", ck_assert_uint_eq(fb_received(old), 0));
    REPORTED("fb_sent", ck_assert_uint_eq(fb_sent(old), 0));
    REPORTED(
        "fb_frame_until", ck_assert_int_eq(fb_frame_until(old, &rest, "\n", 1, &limit, &frame), 0));
    REPORTED("fb_frame_fixed", ck_assert_int_eq(fb_frame_fixed(old, &rest, 1, &limit, &frame), 0));
    REPORTED("fb_frame_prefixed",
        ck_assert_int_eq(fb_frame_prefixed(old, &rest, 1, 0, &limit, &frame), 0));
    REPORTED("fb_connect", ck_assert_ptr_null(fb_connect(old, NULL, ops, &none)));
    REPORTED("fb_is_reused", ck_assert_int_eq(fb_is_reused(old), 0));
    REPORTED("fb_keep", fb_keep(old, 1));
    REPORTED("fb_pipe", fb_pipe(old, other, NULL));
    REPORTED("fb_pipe", fb_pipe(other, old, NULL));
    REPORTED("fb_worker_state", ck_assert_ptr_null(fb_worker_state(old)));
    REPORTED("fb_ref_of", ck_assert_uint_eq(fb_ref_of(old), 0));
    REPORTED("fb_send_message", ck_assert_uint_eq(fb_send_message(old, 1, "x", 1), 0));
    REPORTED("fb_metric_add", fb_metric_add(old, 0, 1));
    REPORTED("fb_metric_total", ck_assert_int_eq(fb_metric_total(old, 0), 0));
    REPORTED("fb_conn_logf", fb_conn_logf(old, FB_LOG_ALERT, "x"));
    REPORTED("fb_count_request", fb_count_request(old));
    ck_assert_ptr_eq(fb_worker_of(old), fb_test_worker(test));
    scripted_settle(test);
}

enum { ENDED, LINGERS, KEPT, STATES };

START_TEST(calls_on_what_has_ended_are_told)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { 0 }, other = { 0 };
    fb_test_peer *peer, *client = scripted_conn_open(test, &a);
    fb_conn *old;

    scripted_conn_open(test, &other);
    peer = scripted_conn_connect(test, &a, &b);
    old = _i == LINGERS ? a.conn : b.conn;
    if (_i == LINGERS) {
        fb_stop(old);
        fb_test_says(client, "unread");
        fb_close(old);
    } else if (_i == KEPT) {
        fb_keep(old, 10000);
    } else {
        fb_close(old);
    }
    scripted_settle(test);
    check_reported(test, old, other.conn);
    ck_assert_uint_eq(other.closings, 0);
    ck_assert_uint_eq(b.closings, 1);
    if (_i == KEPT)
        ck_assert(!fb_test_is_closed(peer));
    ck_assert_str_eq(peer_heard(peer), "");
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, with_its_owner_a_connection_ends, 0, countof(ways));
    tcase_add_test(tcase, without_it_its_owner_goes_on);
    tcase_add_test(tcase, a_child_that_has_finished);
    tcase_add_loop_test(tcase, nothing_is_begun_for_an_owner_that_ends, 0, countof(ways));
    tcase_add_loop_test(tcase, who_is_closed_connects_no_more, 0, countof(ways));
    tcase_add_loop_test(tcase, closed_may_call_everything, 0, countof(ways));
    tcase_add_loop_test(tcase, calls_on_what_has_ended_are_told, 0, STATES);
}

TEST_MAIN("sdk_ends", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients passed from server to server: the parts of the first session that end, and the state at
 * the beginning of the second session. */
#include "sdk/scripted_conn.h"

#include "net/address_parse.h"

#include <string.h>

struct hand_conf {
    const fb_listener *listener;
    const fb_template *text;
    const fb_variable *name;
};

static struct hand_test {
    fb_test *worker;
    const fb_stream *stream;
    const fb_listener *listener;
    int (*opened)(fb_conn *conn);  /* for the first server */
    void (*closed)(fb_conn *conn); /* the same; NULL: does nothing */
    fb_conn *conn;                 /* the second server's */
    fb_ref ref;
    unsigned openings[2], closings[2], timers, server_closings, logs[2];
    fb_reason reason;
    char text[64];
} test;

static const struct hand_conf *conf_of(const fb_conn *conn)
{
    return fb_conf_of(conn);
}

/* The number of the connection's server. */
static unsigned side_of(const fb_conn *conn)
{
    return conf_of(conn)->listener == NULL;
}

static int hand_opened(fb_conn *conn, void *state)
{
    fb_bytes text;

    ck_assert_uint_eq(*(uint64_t *)state, 0);
    *(uint64_t *)state = 1;
    test.openings[side_of(conn)]++;
    if (side_of(conn) == 0)
        test.listener = conf_of(conn)->listener;
    if (side_of(conn) == 0)
        return test.opened(conn);
    test.conn = conn;
    ck_assert_uint_eq(test.closings[0], 1);
    ck_assert_int_eq(test.stream->evaluate(conn, conf_of(conn)->text, &text), 0);
    snprintf(test.text, sizeof(test.text), "%.*s", (int)text.n, (const char *)text.p);
    return 0;
}

static size_t hand_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    ck_assert_uint_eq(side_of(conn), 1);
    ck_assert_int_eq(test.stream->pass(conn, test.listener), -1); /* not in `opened` */
    fb_write(conn, in.p, in.n);
    return in.n;
}

static void hand_timer(fb_conn *conn, void *state, uint32_t id)
{
    (void)conn;
    (void)state;
    (void)id;
    test.timers++;
}

static void hand_closed(fb_conn *conn, void *state, fb_reason reason)
{
    ck_assert_uint_eq(*(uint64_t *)state, 1);
    test.closings[side_of(conn)]++;
    test.reason = reason;
    if (side_of(conn) == 0 && test.closed != NULL)
        test.closed(conn);
}

static void server_closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)conn;
    (void)state;
    (void)reason;
    ck_assert(test.closings[0] == 0 || test.closed != NULL);
    test.server_closings++;
}

static const fb_ops server_ops = { .size = sizeof(fb_ops), .closed = server_closed };

static int hand_worker_start(fb_worker *worker, void *state)
{
    (void)state;
    test.stream = fb_interface(worker, "stream", 1);
    return test.stream == NULL;
}

static int hand_to(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    const fb_listener **listener = value;

    ck_assert_uint_eq(n, 1);
    *listener = fb_conf_listener(conf, "hand_to", args[0]);
    return *listener != NULL ? 0 : -1;
}

static int hand_conf_done(fb_conf *conf, void *own, const void *parent)
{
    struct hand_conf *hand = own;

    (void)parent;
    hand->name = fb_conf_variable(conf, NULL, "hand_name");
    return hand->name != NULL ? 0 : -1;
}

static const fb_directive directives[] = {
    { .name = "hand", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "hand_to",
        .value = FB_VALUE_CUSTOM,
        .offset = offsetof(struct hand_conf, listener),
        .room = sizeof(const fb_listener *),
        .set = hand_to,
        .args_least = 1,
        .args_most = 1 },
    { .name = "hand_text",
        .value = FB_VALUE_TEMPLATE,
        .offset = offsetof(struct hand_conf, text),
        .initial = "$server_port $status $bytes_sent $hand_name." },
};

static const fb_variable_definition variables[] = { { .name = "hand_name" } };

static const fb_ops ops = { .size = sizeof(fb_ops),
    .opened = hand_opened,
    .data = hand_data,
    .timer = hand_timer,
    .closed = hand_closed };

static const fb_protocol hand = {
    FB_PROTOCOL_HEADER,
    .name = "hand",
    FB_PROTOCOL_DIRECTIVES(directives),
    FB_PROTOCOL_VARIABLES(variables),
    .conn_state = sizeof(uint64_t),
    .conf_state = sizeof(struct hand_conf),
    .ops = &ops,
    .conf_done = hand_conf_done,
    .worker_start = hand_worker_start,
};

static unsigned note_log(struct fb_conn *conn, const void *arg)
{
    (void)arg;
    test.logs[side_of(conn)]++;
    return 0;
}

static fb_test_peer *begin(int (*opened)(fb_conn *conn), const char *stream)
{
    static const char *const servers[] = { "hand;", NULL };
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "hand; hand_to 192.0.2.80:81;",
        .stream = stream,
        .servers = servers,
    };
    static struct phase_handler log;
    fb_test_peer *peer;
    struct server *server;

    memset(&test, 0, sizeof(test));
    test.opened = opened;
    test.worker = fb_test_start_with(&hand, &options);
    ck_assert_ptr_nonnull(test.worker);
    log = (struct phase_handler) { .phase = PHASE_LOG, .run = note_log };
    STAILQ_FOREACH (server, &test.worker->workers[0].cycle->stream.servers, link)
        server->after = &log;
    peer = fb_test_connect(test.worker);
    fb_test_run(test.worker);
    return peer;
}

static int pass(fb_conn *conn)
{
    return test.stream->pass(conn, conf_of(conn)->listener);
}

static int pass_much(fb_conn *conn)
{
    static struct fb_target target;

    test.ref = fb_ref_of(conn);
    fb_timer(conn, 1, 1000);
    fb_set_timeout(conn, 500);
    fb_set_receive_timeout(conn, 600);
    fb_set_idle(conn, 1);
    fb_stop(conn);
    ck_assert_ptr_nonnull(fb_alloc(conn, 100));
    ck_assert_ptr_nonnull(fb_temp_alloc(conn, 100));
    ck_assert_int_eq(
        test.stream->set(conn, conf_of(conn)->name, (fb_bytes) { (const uint8_t *)"ann", 3 }), 0);
    test.stream->set_status(conn, 503);
    test.stream->count(conn, 10, 10);
    ck_assert_ptr_null(target_parse(SERVER, false, &target));
    fb_test_serve(test.worker, SERVER, FB_TEST_ACCEPTS);
    ck_assert_ptr_nonnull(fb_connect(conn, &target, &server_ops, NULL));
    fb_write(conn, "banner ", 7);
    return pass(conn);
}

START_TEST(the_other_session_begins_with_nothing)
{
    fb_test_peer *peer = begin(pass_much, _i == 0 ? NULL : "receive_timeout 20s;");

    ck_assert_str_eq(test.text, "81 000 0 .");
    ck_assert_uint_eq(test.openings[1], 1);
    ck_assert_uint_eq(test.server_closings, 1);
    ck_assert_int_eq(test.reason, FB_FINISHED);
    ck_assert_ptr_null(fb_find(fb_test_worker(test.worker), test.ref));
    fb_test_says(peer, "hello");
    ck_assert_str_eq(peer_heard(peer), "banner hello");
    fb_test_pass(test.worker, 10000);
    ck_assert_uint_eq(test.timers, 0);
    ck_assert_uint_eq(test.closings[1], 0);
    fb_test_shut(peer);
    ck_assert_int_eq(fb_test_is_closed(peer), 1);
    ck_assert_uint_eq(test.closings[1], 1);
    ck_assert_uint_eq(test.logs[0], 0);
    ck_assert_uint_eq(test.logs[1], 1);
    scripted_finish(&test.worker);
}
END_TEST

static int pass_without_memory(fb_conn *conn)
{
    ck_assert_int_eq(
        test.stream->set(conn, conf_of(conn)->name, (fb_bytes) { (const uint8_t *)"ann", 3 }), 0);
    fb_test_refuse_memory(test.worker, 0, 1);
    ck_assert_int_eq(pass(conn), -1);
    fb_test_refuse_memory(test.worker, 0, 0);
    return pass(conn);
}

/* Without memory for the pass nothing has changed: the protocol may try again. */
START_TEST(a_pass_without_memory_changes_nothing)
{
    fb_test_peer *peer = begin(pass_without_memory, NULL);

    ck_assert_int_eq(fb_test_is_closed(peer), 0);
    ck_assert_uint_eq(test.openings[1], 1);
    fb_test_shut(peer);
    scripted_finish(&test.worker);
}
END_TEST

static int pass_and_refuse(fb_conn *conn)
{
    ck_assert_int_eq(pass(conn), 0);
    return 1;
}

static int pass_and_close(fb_conn *conn)
{
    ck_assert_int_eq(pass(conn), 0);
    fb_close(conn);
    ck_assert_int_eq(pass(conn), -1);
    return 0;
}

START_TEST(who_ends_the_connection_does_not_pass_it)
{
    fb_test_peer *peer = begin(_i == 0 ? pass_and_refuse : pass_and_close, NULL);

    ck_assert_int_eq(fb_test_is_closed(peer), 1);
    ck_assert_int_eq(test.reason, _i == 0 ? FB_REFUSED : FB_FINISHED);
    ck_assert_uint_eq(test.closings[0], 1);
    ck_assert_uint_eq(test.openings[1], 0);
    ck_assert_uint_eq(test.logs[0], 1);
    scripted_finish(&test.worker);
}
END_TEST

static int do_not_pass(fb_conn *conn)
{
    test.conn = conn;
    return 0;
}

START_TEST(clients_are_passed_in_their_opened_alone)
{
    fb_test_peer *peer = begin(do_not_pass, NULL);

    ck_assert_int_eq(pass(test.conn), -1);
    ck_assert_ptr_nonnull(
        strstr(fb_test_logged(test.worker), "a client can be passed in \"opened\" alone"));
    fb_test_reset(peer);
    fb_test_run(test.worker);
    ck_assert_uint_eq(test.closings[0], 1);
    scripted_finish(&test.worker);
}
END_TEST

static int pass_in_become(fb_conn *conn)
{
    ck_assert_int_eq(fb_become(conn, &ops, fb_state_of(conn)), 0);
    return pass(conn);
}

START_TEST(other_callbacks_end_too)
{
    fb_test_peer *peer = begin(pass_in_become, NULL);

    fb_test_says(peer, "hello");
    ck_assert_str_eq(peer_heard(peer), "hello");
    ck_assert_uint_eq(test.closings[0], 1);
    scripted_finish(&test.worker);
}
END_TEST

/* Calls in `closed` do nothing to the connection, except fb_abort(), which ends the connection. */
static unsigned late; /* the case */

static void connect_late(fb_conn *conn)
{
    static struct fb_target target;

    ck_assert_ptr_null(target_parse(SERVER, false, &target));
    fb_test_serve(test.worker, SERVER, FB_TEST_ACCEPTS);
    fb_connect(conn, &target, &server_ops, NULL);
}

static int pass_late(fb_conn *conn)
{
    static void (*const closed[])(fb_conn *) = { connect_late, fb_close, fb_abort };

    test.closed = closed[late];
    return pass(conn);
}

START_TEST(its_closed_may_misuse_the_connection)
{
    fb_test_peer *peer;

    late = (unsigned)_i;
    peer = begin(pass_late, NULL);
    fb_test_run(test.worker);
    ck_assert_uint_eq(test.closings[0], 1);
    ck_assert_uint_eq(test.openings[1], _i != 2);
    ck_assert_int_eq(fb_test_is_closed(peer), _i == 2);
    if (_i != 2)
        fb_test_shut(peer);
    fb_test_run(test.worker);
    ck_assert_uint_eq(test.closings[1], _i != 2);
    scripted_finish(&test.worker);
}
END_TEST

static unsigned refuse(struct fb_conn *conn, const void *arg)
{
    (void)conn;
    (void)arg;
    return STATUS_FORBIDDEN;
}

static int pass_to_refusal(fb_conn *conn)
{
    static struct phase_handler access = { .phase = PHASE_ACCESS, .run = refuse };
    struct server *server = STAILQ_FIRST(&test.worker->workers[0].cycle->stream.servers);

    STAILQ_NEXT(server, link)->before = &access;
    return pass(conn);
}

START_TEST(the_other_servers_rules_hold)
{
    static const char *const servers[] = { "hand;", NULL };
    const fb_test_options options = {
        .size = sizeof(options), .server = "hand; hand_to 192.0.2.80:81;", .servers = servers
    };
    fb_test_peer *peer;

    memset(&test, 0, sizeof(test));
    test.opened = pass_to_refusal;
    test.worker = fb_test_start_with(&hand, &options);
    peer = fb_test_connect(test.worker);
    ck_assert_int_eq(fb_test_is_closed(peer), 1);
    ck_assert_uint_eq(test.closings[0], 1);
    ck_assert_uint_eq(test.openings[1], 0);
    scripted_finish(&test.worker);
}
END_TEST

START_TEST(a_draining_worker_tells_the_other_protocol)
{
    fb_test_peer *peer = begin(pass, NULL);

    fb_test_drain(test.worker, 1000);
    fb_test_pass(test.worker, 1000);
    ck_assert_int_eq(fb_test_is_closed(peer), 1);
    ck_assert_int_eq(test.reason, FB_DRAINED);
    scripted_finish(&test.worker);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, the_other_session_begins_with_nothing, 0, 2);
    tcase_add_test(tcase, a_pass_without_memory_changes_nothing);
    tcase_add_loop_test(tcase, who_ends_the_connection_does_not_pass_it, 0, 2);
    tcase_add_test(tcase, clients_are_passed_in_their_opened_alone);
    tcase_add_test(tcase, other_callbacks_end_too);
    tcase_add_loop_test(tcase, its_closed_may_misuse_the_connection, 0, 3);
    tcase_add_test(tcase, the_other_servers_rules_hold);
    tcase_add_test(tcase, a_draining_worker_tells_the_other_protocol);
}

TEST_MAIN("sdk_pass", add_tests)

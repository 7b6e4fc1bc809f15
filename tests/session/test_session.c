/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks and calls of a protocol, and what the log says of a session. */
#include "net/address_parse.h"
#include "support/fixture.h"

#include <stdio.h>
#include <string.h>

#define CONTEXT ", client: 192.0.2.1, server: 192.0.2.7:77\n"

#define CONNECTED "t: [info] *1 client 192.0.2.1:1234 connected to 192.0.2.7:77\n"
#define DISCONNECTED(bytes, reason)                                                                \
    "t: [info] *1 client disconnected, bytes from/to client:" bytes                                \
    ", session time: 0.000, reason: " reason CONTEXT

/* Fails unless the session number 1 has ended after so much input, by the log too. */
static void check_ended(struct fixture *fixture, size_t n, fb_reason reason, const char *text)
{
    char expected[256];

    ck_assert_uint_eq(fixture->server.record.closings, 1);
    ck_assert_int_eq(fixture->server.record.reason, reason);
    snprintf(expected, sizeof(expected), CONNECTED DISCONNECTED("%zu/0", "%s"), n, text);
    ck_assert_str_eq(fixture_logged_all(fixture), expected);
    fixture_stop(fixture);
}

START_TEST(a_protocol_is_told_everything)
{
    struct fixture *fixture = fixture_start_stream(1);
    struct sim_socket *client = scripted_connect(fixture);

    ck_assert_uint_eq(fixture->server.record.openings, 1);
    ck_assert_uint_eq(fixture_count(fixture, COUNTER_HANDLED), 1);
    sim_says(client, "hello");
    fixture_run(fixture);
    ck_assert_str_eq(fixture->server.record.last, "hello");
    sim_end(client);
    fixture_run(fixture);
    ck_assert_uint_eq(fixture->server.record.eofs, 1);
    check_ended(fixture, 5, FB_FINISHED, "finished");
}
END_TEST

static size_t echo_and_close(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    fb_write(conn, in.p, in.n);
    fb_close(conn);
    return in.n;
}

/* Seconds, and bytes of both directions. */
START_TEST(the_log_says_how_long_and_how_much)
{
    struct fixture *fixture = fixture_start_stream(1);
    struct sim_socket *client = scripted_connect(fixture);

    fixture->server.script.data = echo_and_close;
    ck_assert_str_eq(fixture_logged_all(fixture), CONNECTED);
    fixture_pass(fixture, 12045);
    sim_says(client, "hello");
    fixture_run(fixture);
    ck_assert_str_eq(fixture_logged_all(fixture),
        "t: [info] *1 client disconnected, bytes from/to client:5/5, session time: 12.045, reason: "
        "finished" CONTEXT);
    fixture_stop(fixture);
}
END_TEST

/* At the default level of a log. */
START_TEST(without_info_the_log_says_nothing)
{
    struct fixture *fixture = fixture_start_stream(1);

    fixture->log.target.level = LEVEL_NOTICE;
    log_update(&fixture->log.log);
    sim_end(scripted_connect(fixture));
    fixture_run(fixture);
    ck_assert_uint_eq(fixture->server.record.closings, 1);
    ck_assert_str_eq(fixture_logged_all(fixture), "");
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_protocol_may_leave_everything_out)
{
    static const fb_ops nothing = { .size = sizeof(fb_ops) };
    struct fixture *fixture = fixture_start_stream(1);
    struct sim_socket *client;

    fixture->server.protocol.ops = &nothing;
    client = scripted_connect(fixture);
    sim_says(client, "dropped");
    fixture_run(fixture);
    ck_assert_uint_eq(sim_unread(client), 0);
    ck_assert(!client->closed);
    sim_end(client); /* without `eof` it is closed */
    fixture_run(fixture);
    ck_assert(client->closed);
    ck_assert_str_eq(fixture_logged(fixture), DISCONNECTED("7/0", "finished"));
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_server_without_protocol_closes)
{
    struct fixture *fixture = fixture_start_stream(1);
    struct sim_socket *client;

    fixture->server.server.protocol = NULL;
    client = scripted_connect(fixture);
    ck_assert(client->closed && !client->reset);
    ck_assert_str_eq(fixture_logged_all(fixture), CONNECTED DISCONNECTED("0/0", "finished"));
    fixture_stop(fixture);
}
END_TEST

static int refuse_client(fb_conn *conn, void *state)
{
    (void)conn;
    (void)state;
    return 1;
}

START_TEST(a_protocol_may_refuse)
{
    struct fixture *fixture = fixture_start_stream(1);
    struct sim_socket *client;

    fixture->server.script.opened = refuse_client;
    client = scripted_connect(fixture);
    ck_assert(client->closed && !client->reset);
    check_ended(fixture, 0, FB_REFUSED, "refused by the protocol");
}
END_TEST

static size_t leave_input(fb_conn *conn, void *state, fb_bytes in)
{
    (void)conn;
    (void)state;
    (void)in;
    return 0;
}

static size_t leave_and_stop(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    (void)in;
    fb_stop(conn);
    return 0;
}

static const struct {
    uint32_t limit;
    size_t first, rest; /* the rest reaches it */
} limits[] = { { 1, 0, 1 }, { 100, 99, 1 }, { 100, 0, 100 }, { 100, 50, 2000 }, { 0, 65535, 1 } };

START_TEST(unconsumed_input_has_a_limit)
{
    struct fixture *fixture = fixture_start_stream(1);
    struct sim_socket *client;
    static const char bytes[65535];

    fixture->server.script.data = leave_input;
    fixture->server.protocol.input_limit = limits[_i].limit;
    client = scripted_connect(fixture);
    if (limits[_i].first > 0) {
        sim_say(client, bytes, limits[_i].first);
        fixture_run(fixture);
        ck_assert_uint_eq(fixture->server.record.datas, 1);
        ck_assert_uint_eq(fixture->server.record.closings, 0);
    }
    sim_say(client, bytes, limits[_i].rest);
    fixture_run(fixture);
    ck_assert(client->closed && !client->reset);
    check_ended(fixture, limits[_i].first + limits[_i].rest, FB_INPUT_LIMIT,
        "too much input that the protocol does not consume");
}
END_TEST

START_TEST(who_is_stopped_is_not_at_its_limit)
{
    struct fixture *fixture = fixture_start_stream(1);
    struct sim_socket *client;

    fixture->server.script.data = leave_and_stop;
    fixture->server.protocol.input_limit = 3;
    client = scripted_connect(fixture);
    sim_says(client, "more than that");
    fixture_run(fixture);
    ck_assert_uint_eq(fixture->server.record.closings, 0);
    fixture->server.script.data = leave_input;
    fb_resume(fixture->server.record.conn);
    fixture_run(fixture);
    check_ended(fixture, strlen("more than that"), FB_INPUT_LIMIT,
        "too much input that the protocol does not consume");
}
END_TEST

static size_t consume_too_much(fb_conn *conn, void *state, fb_bytes in)
{
    (void)conn;
    (void)state;
    return in.n + 1;
}

START_TEST(a_protocol_that_consumes_what_is_not_there_is_aborted)
{
    struct fixture *fixture = fixture_start_stream(1);
    struct sim_socket *client = scripted_connect(fixture);

    fixture->server.script.data = consume_too_much;
    sim_says(client, "four");
    fixture_run(fixture);
    ck_assert(client->closed && client->reset);
    ck_assert_int_eq(fixture->server.record.reason, FB_ABORTED);
    ck_assert_str_eq(fixture_logged(fixture),
        "t: [alert] *1 \"scripted\" consumed 5 bytes of 4" CONTEXT DISCONNECTED(
            "4/0", "aborted by the protocol"));
    fixture_stop(fixture);
}
END_TEST

static int check_zeroed(fb_conn *conn, void *state)
{
    static const uint8_t zeros[SCRIPTED_STATE];

    (void)conn;
    ck_assert_int_eq(memcmp(state, zeros, sizeof(zeros)), 0);
    ck_assert_uint_eq((uintptr_t)state % 16, 0);
    memset(state, 0xa5, sizeof(zeros));
    return 0;
}

static void check_kept(fb_conn *conn, void *state, fb_reason reason)
{
    uint8_t expected[SCRIPTED_STATE];

    (void)conn;
    (void)reason;
    memset(expected, 0xa5, sizeof(expected));
    ck_assert_int_eq(memcmp(state, expected, sizeof(expected)), 0);
}

START_TEST(the_state_is_zeroed_each_time)
{
    struct fixture *fixture = fixture_start_stream(8);

    fixture->server.script.opened = check_zeroed;
    fixture->server.script.closed = check_kept;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 8; i++)
            scripted_connect(fixture);
        scripted_end_sessions(fixture);
    }
    ck_assert_uint_eq(fixture->server.record.openings, 24);
    fixture_stop(fixture);
}
END_TEST

START_TEST(without_state_it_is_null)
{
    struct fixture *fixture = fixture_start_stream(1);

    fixture->server.protocol.conn_state = 0;
    fixture->server.record.state = fixture;
    scripted_connect(fixture);
    ck_assert_ptr_null(fixture->server.record.state);
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
}
END_TEST

/* More than there are addresses. */
START_TEST(without_memory_for_its_state_a_protocol_hears_nothing)
{
    struct fixture *fixture = fixture_start_stream(1024 * 1024);
    struct sim_socket *client;

    fixture->server.protocol.conn_state = UINT32_MAX;
    client = scripted_connect(fixture);
    ck_assert(client->closed);
    ck_assert_uint_eq(fixture->server.record.openings, 0);
    ck_assert_uint_eq(fixture->server.record.closings, 0);
    ck_assert_str_eq(fixture_logged_all(fixture), CONNECTED
        "t: [crit] *1 no memory for the state of \"scripted\" (12: Cannot allocate memory)" CONTEXT
            DISCONNECTED("0/0", "no memory"));
    fixture_stop(fixture);
}
END_TEST

static const struct {
    const char *block;
    bool matches;
} debugged[] = { { "192.0.2.1", true }, { "192.0.2.0/24", true }, { "192.0.3.0/24", false },
    { "unix:", false } };

START_TEST(debug_connection_shows_chosen_ones)
{
    struct fixture *fixture = fixture_start_stream(1);
    struct address_block blocks[2];
    struct sim_socket *client;
    const char *lines;

    fixture->log.target.level = LEVEL_ERROR;
    log_update(&fixture->log.log);
    ck_assert_ptr_null(address_block_parse("10.0.0.0/8", &blocks[0]));
    ck_assert_ptr_null(address_block_parse(debugged[_i].block, &blocks[1]));
    fixture->stream->debug = blocks;
    fixture->stream->debug_n = 2;
    client = scripted_connect(fixture);
    sim_says(client, "hello");
    fixture_run(fixture);
    fb_conn_logf(fixture->server.record.conn, FB_LOG_DEBUG, "from the %s", "protocol");
    lines = fixture_logged(fixture);
    if (debugged[_i].matches)
        ck_assert_str_eq(lines,
            "t: [debug] *1 opened for \"scripted\"" CONTEXT "t: [debug] *1 received 5 bytes" CONTEXT
            "t: [debug] *1 from the protocol" CONTEXT);
    else
        ck_assert_str_eq(lines, "");
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_protocol_is_told_everything);
    tcase_add_test(tcase, the_log_says_how_long_and_how_much);
    tcase_add_test(tcase, without_info_the_log_says_nothing);
    tcase_add_test(tcase, a_protocol_may_leave_everything_out);
    tcase_add_test(tcase, a_server_without_protocol_closes);
    tcase_add_test(tcase, a_protocol_may_refuse);
    tcase_add_loop_test(tcase, unconsumed_input_has_a_limit, 0, (int)countof(limits));
    tcase_add_test(tcase, who_is_stopped_is_not_at_its_limit);
    tcase_add_test(tcase, a_protocol_that_consumes_what_is_not_there_is_aborted);
    tcase_add_test(tcase, the_state_is_zeroed_each_time);
    tcase_add_test(tcase, without_state_it_is_null);
    tcase_add_test(tcase, without_memory_for_its_state_a_protocol_hears_nothing);
    tcase_add_loop_test(tcase, debug_connection_shows_chosen_ones, 0, (int)countof(debugged));
}

TEST_MAIN("session", add_tests)

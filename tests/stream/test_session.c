/* SPDX-License-Identifier: BSD-2-Clause */
/* What a protocol is told and may do, and what the log says of a session. */
#include "stream/stage.h"

#include <stdio.h>
#include <string.h>

#define CONTEXT ", client: 192.0.2.1, server: 192.0.2.7:77\n"

/* Fails unless the session number 1 has ended, by the log too. */
static void check_ended(struct stage *stage, fb_reason reason, const char *text)
{
    char expected[256];

    ck_assert_uint_eq(stage->record.closings, 1);
    ck_assert_int_eq(stage->record.reason, reason);
    snprintf(expected, sizeof(expected), "t: [info] *1 session ended: %s" CONTEXT, text);
    ck_assert_str_eq(stage_logged(stage), expected);
    stage_tear_down(stage);
}

START_TEST(a_protocol_is_told_everything)
{
    struct stage *stage = stage_set_up(1);
    struct fake_socket *client = stage_connect(stage);

    ck_assert_uint_eq(stage->record.openings, 1);
    ck_assert_uint_eq(stage->shared->slots[stage->slot.slot].counters.n[COUNTER_HANDLED], 1);
    fake_says(client, "hello");
    stage_run(stage);
    ck_assert_str_eq(stage->record.last, "hello");
    fake_end(client);
    stage_run(stage);
    ck_assert_uint_eq(stage->record.eofs, 1);
    check_ended(stage, FB_FINISHED, "finished");
}
END_TEST

START_TEST(a_protocol_may_leave_everything_out)
{
    static const fb_ops nothing = { .size = sizeof(fb_ops) };
    struct stage *stage = stage_set_up(1);
    struct fake_socket *client;

    stage->protocol.ops = &nothing;
    client = stage_connect(stage);
    fake_says(client, "dropped");
    stage_run(stage);
    ck_assert_uint_eq(fake_unread(client), 0);
    ck_assert(!client->closed);
    fake_end(client); /* without `eof` it is closed */
    stage_run(stage);
    ck_assert(client->closed);
    ck_assert_str_eq(stage_logged(stage), "t: [info] *1 session ended: finished" CONTEXT);
    stage_tear_down(stage);
}
END_TEST

START_TEST(a_server_without_protocol_closes)
{
    struct stage *stage = stage_set_up(1);
    struct fake_socket *client;

    stage->server.protocol = NULL;
    client = stage_connect(stage);
    ck_assert(client->closed && !client->reset);
    ck_assert_str_eq(stage_logged(stage), "t: [info] *1 session ended: finished" CONTEXT);
    stage_tear_down(stage);
}
END_TEST

static int refuse(fb_conn *conn, void *state)
{
    (void)conn;
    (void)state;
    return 1;
}

START_TEST(a_protocol_may_refuse)
{
    struct stage *stage = stage_set_up(1);
    struct fake_socket *client;

    stage->script.opened = refuse;
    client = stage_connect(stage);
    ck_assert(client->closed && !client->reset);
    check_ended(stage, FB_REFUSED, "refused by the protocol");
}
END_TEST

static size_t leave(fb_conn *conn, void *state, fb_bytes in)
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
} limits[] = { { 1, 0, 1 }, { 100, 99, 1 }, { 100, 0, 100 }, { 100, 50, 5000 }, { 0, 65535, 1 } };

START_TEST(unconsumed_input_has_a_limit)
{
    struct stage *stage = stage_set_up(1);
    struct fake_socket *client;
    static const char bytes[65535];

    stage->script.data = leave;
    stage->protocol.input_limit = limits[_i].limit;
    client = stage_connect(stage);
    if (limits[_i].first > 0) {
        fake_say(client, bytes, limits[_i].first);
        stage_run(stage);
        ck_assert_uint_eq(stage->record.datas, 1);
        ck_assert_uint_eq(stage->record.closings, 0);
    }
    fake_say(client, bytes, limits[_i].rest);
    stage_run(stage);
    ck_assert(client->closed && !client->reset);
    check_ended(stage, FB_INPUT_LIMIT, "too much input that the protocol does not consume");
}
END_TEST

START_TEST(who_is_stopped_is_not_at_its_limit)
{
    struct stage *stage = stage_set_up(1);
    struct fake_socket *client;

    stage->script.data = leave_and_stop;
    stage->protocol.input_limit = 3;
    client = stage_connect(stage);
    fake_says(client, "more than that");
    stage_run(stage);
    ck_assert_uint_eq(stage->record.closings, 0);
    stage->script.data = leave;
    fb_resume(stage->record.conn);
    stage_run(stage);
    check_ended(stage, FB_INPUT_LIMIT, "too much input that the protocol does not consume");
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
    struct stage *stage = stage_set_up(1);
    struct fake_socket *client = stage_connect(stage);

    stage->script.data = consume_too_much;
    fake_says(client, "four");
    stage_run(stage);
    ck_assert(client->closed && client->reset);
    ck_assert_int_eq(stage->record.reason, FB_ABORTED);
    ck_assert_str_eq(stage_logged(stage),
        "t: [alert] *1 \"proto\" consumed 5 bytes of 4" CONTEXT
        "t: [info] *1 session ended: aborted by the protocol" CONTEXT);
    stage_tear_down(stage);
}
END_TEST

static int check_zeroed(fb_conn *conn, void *state)
{
    static const uint8_t zeros[STAGE_STATE];

    (void)conn;
    ck_assert_int_eq(memcmp(state, zeros, sizeof(zeros)), 0);
    ck_assert_uint_eq((uintptr_t)state % 16, 0);
    memset(state, 0xa5, sizeof(zeros));
    return 0;
}

static void check_kept(fb_conn *conn, void *state, fb_reason reason)
{
    uint8_t expected[STAGE_STATE];

    (void)conn;
    (void)reason;
    memset(expected, 0xa5, sizeof(expected));
    ck_assert_int_eq(memcmp(state, expected, sizeof(expected)), 0);
}

START_TEST(the_state_is_zeroed_each_time)
{
    struct stage *stage = stage_set_up(8);

    stage->script.opened = check_zeroed;
    stage->script.closed = check_kept;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 8; i++)
            stage_connect(stage);
        stage_end(stage);
    }
    ck_assert_uint_eq(stage->record.openings, 24);
    stage_tear_down(stage);
}
END_TEST

START_TEST(without_state_it_is_null)
{
    struct stage *stage = stage_set_up(1);

    stage->protocol.conn_state = 0;
    stage->record.state = stage;
    stage_connect(stage);
    ck_assert_ptr_null(stage->record.state);
    stage_end(stage);
    stage_tear_down(stage);
}
END_TEST

/* More than there are addresses. */
START_TEST(without_memory_for_its_state_a_protocol_hears_nothing)
{
    struct stage *stage = stage_set_up(1024 * 1024);
    struct fake_socket *client;

    stage->protocol.conn_state = UINT32_MAX;
    client = stage_connect(stage);
    ck_assert(client->closed);
    ck_assert_uint_eq(stage->record.openings, 0);
    ck_assert_uint_eq(stage->record.closings, 0);
    ck_assert_str_eq(stage_logged(stage),
        "t: [crit] *1 no memory for the state of \"proto\" (12: Cannot allocate memory)" CONTEXT
        "t: [info] *1 session ended: no memory" CONTEXT);
    stage_tear_down(stage);
}
END_TEST

static const struct {
    const char *block;
    bool matches;
} debugged[] = { { "192.0.2.1", true }, { "192.0.2.0/24", true }, { "192.0.3.0/24", false },
    { "unix:", false } };

START_TEST(debug_connection_shows_chosen_ones)
{
    struct stage *stage = stage_set_up(1);
    struct address_block blocks[2];
    struct fake_socket *client;
    const char *lines;

    stage->target.level = LEVEL_ERROR;
    log_update(&stage->log);
    ck_assert_ptr_null(address_block_parse("10.0.0.0/8", &blocks[0]));
    ck_assert_ptr_null(address_block_parse(debugged[_i].block, &blocks[1]));
    stage->worker.stream.debug = blocks;
    stage->worker.stream.debug_n = 2;
    client = stage_connect(stage);
    fake_says(client, "hello");
    stage_run(stage);
    fb_conn_logf(stage->record.conn, FB_LOG_DEBUG, "from the %s", "protocol");
    lines = stage_logged(stage);
    if (debugged[_i].matches)
        ck_assert_str_eq(lines,
            "t: [debug] *1 opened for \"proto\"" CONTEXT "t: [debug] *1 received 5 bytes" CONTEXT
            "t: [debug] *1 from the protocol" CONTEXT);
    else
        ck_assert_str_eq(lines, "");
    stage_end(stage);
    stage_tear_down(stage);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_protocol_is_told_everything);
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

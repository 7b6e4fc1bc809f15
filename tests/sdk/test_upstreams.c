/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface "upstream": tries of a session by a protocol's own calls, and the resulting
 * variables. */
#include "sdk/scripted_conn.h"

#include <string.h>

#define LOG "$upstream_addr|$upstream_bytes_sent|$upstream_connect_time|$upstream_first_byte_time"
#define TEXT "lead_text " LOG ";"

/* Longer than the text of any address. */
#define NAME_20 "a-name-of-20-letters"
#define LONG_NAME NAME_20 NAME_20 NAME_20 NAME_20 NAME_20 NAME_20 NAME_20 NAME_20

struct lead_conf {
    const fb_upstream *upstream;
    const fb_template *text;
};

static struct lead_test {
    fb_test *worker;
    const fb_stream *stream;
    const fb_upstreams *upstreams;
    void (*opened)(fb_conn *client);
    fb_conn *client;
    const fb_try *run;
    unsigned connections, openings;
    char text[256];
} test;

static const struct lead_conf *conf_of(const fb_conn *conn)
{
    return fb_conf_of(conn);
}

static void chosen(fb_conn *client, void *state, fb_choice choice, const fb_try *run)
{
    (void)client, (void)state, (void)choice, (void)run;
    ck_abort_msg("an address needs no wait");
}

static fb_choice choose(fb_conn *client)
{
    return test.upstreams->choose(client, conf_of(client)->upstream, chosen, &test.run);
}

static void note_text(fb_conn *client)
{
    fb_bytes text;

    ck_assert_int_eq(test.stream->evaluate(client, conf_of(client)->text, &text), 0);
    snprintf(test.text, sizeof(test.text), "%.*s", (int)text.n, (const char *)text.p);
}

static int lead_opened(fb_conn *client, void *state)
{
    (void)state;
    test.client = client;
    test.opened(client);
    return 0;
}

static int lead_worker_start(fb_worker *worker, void *state)
{
    (void)state;
    test.stream = fb_interface(worker, "stream", 1);
    test.upstreams = fb_interface(worker, "upstream", 1);
    ck_assert_ptr_null(fb_interface(worker, "upstream", 2));
    return test.stream == NULL || test.upstreams == NULL;
}

static int lead_to(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    const fb_upstream **upstream = value;

    ck_assert_uint_eq(n, 1);
    *upstream = fb_conf_upstream(conf, "lead", args[0]);
    return *upstream != NULL ? 0 : -1;
}

static const fb_directive directives[] = {
    { .name = "lead",
        .value = FB_VALUE_CUSTOM,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct lead_conf, upstream),
        .room = sizeof(const fb_upstream *),
        .set = lead_to,
        .args_least = 1,
        .args_most = 1 },
    { .name = "lead_text",
        .value = FB_VALUE_TEMPLATE,
        .offset = offsetof(struct lead_conf, text),
        .initial = "$upstream_addr" },
};

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = lead_opened };

static const fb_protocol lead = {
    FB_PROTOCOL_HEADER,
    .name = "lead",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct lead_conf),
    .ops = &ops,
    .worker_start = lead_worker_start,
};

static fb_test_peer *begin_with(
    void (*opened)(fb_conn *client), const char *server, const char *stream)
{
    const fb_test_options options = { .size = sizeof(options), .server = server, .stream = stream };
    fb_test_peer *peer;

    memset(&test, 0, sizeof(test));
    test.opened = opened;
    test.worker = fb_test_start_with(&lead, &options);
    ck_assert_ptr_nonnull(test.worker);
    fb_test_serve(test.worker, SERVER, FB_TEST_ACCEPTS);
    peer = fb_test_connect(test.worker);
    fb_test_run(test.worker);
    ck_assert_ptr_nonnull(test.client);
    return peer;
}

static fb_test_peer *begin(void (*opened)(fb_conn *client))
{
    return begin_with(opened, "lead " SERVER "; " TEXT, NULL);
}

static int server_opened(fb_conn *server, void *state)
{
    (void)state;
    test.openings++;
    test.upstreams->connected(test.client);
    fb_write(server, "four", 4);
    return 0;
}

static void server_closed(fb_conn *server, void *state, fb_reason reason)
{
    (void)state;
    (void)reason;
    test.upstreams->end(test.client, server, FB_TRY_SERVED);
    note_text(test.client);
}

static const fb_ops server_ops = {
    .size = sizeof(fb_ops), .opened = server_opened, .closed = server_closed
};

static void lead_client(fb_conn *client)
{
    fb_conn *server;

    note_text(client);
    ck_assert_str_eq(test.text, "|||");
    ck_assert_int_eq(choose(client), FB_CHOICE_SERVER);
    ck_assert_str_eq(test.run->server, SERVER);
    ck_assert_uint_eq(test.run->left, 0);
    ck_assert_uint_eq(test.run->wants_first_byte, 1);
    server = fb_connect(client, test.run->target, &server_ops, NULL);
    ck_assert_ptr_nonnull(server);
}

START_TEST(a_try_is_told_by_variables)
{
    fb_test_peer *peer = begin(lead_client);

    ck_assert_uint_eq(test.openings, 1);
    note_text(test.client);
    ck_assert_str_eq(test.text, SERVER "|0|0.000|-");
    fb_test_pass(test.worker, 1234);
    test.upstreams->first_byte(test.client);
    fb_test_reset(peer);
    fb_test_run(test.worker);
    ck_assert_str_eq(test.text, SERVER "|4|0.000|1.234");
    scripted_finish(&test.worker);
}
END_TEST

static void exhaust(fb_conn *client)
{
    ck_assert_int_eq(choose(client), FB_CHOICE_SERVER);
    test.upstreams->end(client, NULL, FB_TRY_FAILED);
    test.upstreams->end(client, NULL, FB_TRY_FAILED); /* the try has ended already */
    ck_assert_int_eq(choose(client), FB_CHOICE_NONE);
    ck_assert_ptr_null(test.run);
    test.upstreams->connected(client);
    test.upstreams->first_byte(client);
    note_text(client);
    fb_close(client);
}

START_TEST(a_server_is_tried_once)
{
    begin(exhaust);
    ck_assert_str_eq(test.text, SERVER "|0|-|-");
    scripted_finish(&test.worker);
}
END_TEST

static void find_none(fb_conn *client)
{
    ck_assert_int_eq(choose(client), FB_CHOICE_NONE);
    note_text(client);
    fb_close(client);
}

/* The group's name stands in the list then. */
START_TEST(a_group_without_a_server_is_told)
{
    begin_with(find_none, "lead " LONG_NAME "; " TEXT,
        "upstream " LONG_NAME " { server " SERVER " down; }");
    ck_assert_str_eq(test.text, LONG_NAME "|0|-|-");
    scripted_finish(&test.worker);
}
END_TEST

static void choose_twice(fb_conn *client)
{
    ck_assert_int_eq(choose(client), FB_CHOICE_SERVER);
    ck_assert_int_eq(choose(client), FB_CHOICE_INVALID);
    ck_assert_ptr_null(test.run);
    test.upstreams->end(client, NULL, FB_TRY_UNUSED);
    ck_assert_int_eq(choose(client), FB_CHOICE_SERVER);
    fb_close(client);
}

/* A try ends before the next choice. */
START_TEST(a_choice_while_a_try_runs_is_a_mistake)
{
    begin(choose_twice);
    ck_assert_ptr_nonnull(strstr(
        fb_test_logged(test.worker), "[alert] *1 a server is chosen while a try of the session"));
    ck_assert_int_eq(fb_test_end(&test.worker), 1); /* an alert is a fault */
}
END_TEST

static void leave_running(fb_conn *client)
{
    ck_assert_int_eq(choose(client), FB_CHOICE_SERVER);
    fb_close(client);
    ck_assert_int_eq(choose(client), FB_CHOICE_NONE); /* the client ends */
}

START_TEST(the_daemon_ends_a_try_that_is_left)
{
    begin(leave_running);
    scripted_finish(&test.worker);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_try_is_told_by_variables);
    tcase_add_test(tcase, a_server_is_tried_once);
    tcase_add_test(tcase, a_group_without_a_server_is_told);
    tcase_add_test(tcase, a_choice_while_a_try_runs_is_a_mistake);
    tcase_add_test(tcase, the_daemon_ends_a_try_that_is_left);
}

TEST_MAIN("sdk_upstreams", add_tests)

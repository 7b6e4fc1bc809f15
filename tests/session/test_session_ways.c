/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions beginning in several ways at once. At any failure, a protocol learns exactly the ends of
 * its sessions. */
#include "net/address_parse.h"
#include "session/ways.h"

static unsigned ask_own(struct fb_conn *conn, const void *arg)
{
    (void)arg;
    ck_assert_uint_ne(variable_value(conn, test.own)->state, VALUE_FOUND);
    return 0;
}

START_TEST(a_protocol_is_not_asked_before_it_has_the_client)
{
    struct sim_socket *client;

    begin();
    test.servers[0]->binding.ops = &proxy_protocol_ops;
    add_before(0, PHASE_ACCESS, ask_own, NULL);
    if (_i == 1)
        add_before(0, PHASE_ACCESS, refuse, NULL);
    client = scripted_connect(test.fixture);
    sim_says(client, LINE "hello");
    fixture_run(test.fixture);
    ck_assert_uint_eq(test.values, 0);
    fixture_end_all(test.fixture);
    fixture_run(test.fixture);
    ck_assert_uint_eq(test.values, _i == 0);
    end();
}
END_TEST

START_TEST(no_end_without_a_beginning)
{
    bool done = false;

    for (unsigned n = 0; !done; n++) {
        struct sim_socket *client;

        ck_assert_uint_lt(n, 100);
        begin();
        if (_i & 1)
            test.servers[0]->binding.ops = &proxy_protocol_ops;
        if (_i & 2) {
            pass_clients(pass);
            set_times(&test.second.server, _i & 4);
        }
        set_times(&test.servers[0]->server, _i & 4);
        add_limit(0, 1);
        test.fixture->memory.until_failure = n;
        client = scripted_connect(test.fixture);
        sim_says(client, _i & 1 ? LINE "hello" : "hello");
        fixture_run(test.fixture);
        sim_end(client);
        fixture_run(test.fixture);
        done = test.fixture->memory.failures == 0;
        test.fixture->memory.until_failure = UINT_MAX;
        ck_assert_uint_le(test.logs, 1);
        ck_assert(test.logs == 1 || test.servers[0]->record.openings == 0);
        end();
    }
}
END_TEST

/* A limit with a failing key refuses all clients. */
START_TEST(without_memory_no_limit_is_passed)
{
    bool done = false;

    for (unsigned n = 0; !done; n++) {
        struct scripted_record *record;

        ck_assert_uint_lt(n, 100);
        begin();
        record = &test.servers[0]->record;
        add_limit(0, 1);
        scripted_connect(test.fixture);
        ck_assert_uint_eq(record->openings, 1);
        test.fixture->memory.until_failure = n;
        test.fixture->memory.failures_max = 1;
        scripted_connect(test.fixture);
        done = test.fixture->memory.failures == 0;
        test.fixture->memory.until_failure = UINT_MAX;
        ck_assert_uint_eq(record->openings, 1);
        end();
    }
}
END_TEST

static int write_much_and_pass(fb_conn *conn, void *state)
{
    static const char much[200000];

    fb_write(conn, much, sizeof(much));
    return pass(conn, state);
}

START_TEST(output_leaves_while_the_next_header_is_awaited)
{
    struct sim_socket *client;

    begin();
    pass_clients(write_much_and_pass);
    test.second.binding.ops = &proxy_protocol_ops;
    client = scripted_connect_slow(test.fixture, 1000);
    sim_set_room(client, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert_uint_eq(client->sent_n, 200000);
    ck_assert_uint_eq(test.second.record.writables, 0);
    sim_forget_sent(client);
    sim_says(client, LINE "hello");
    fixture_run(test.fixture);
    ck_assert_str_eq(sim_sent(client), "hello");
    end();
}
END_TEST

static void end_in_closed(fb_conn *conn, void *state, fb_reason reason)
{
    static struct fb_target target;

    (void)state;
    (void)reason;
    ck_assert_ptr_null(target_parse(SECOND_SERVER, false, &target));
    ck_assert_ptr_null(fb_connect(conn, &target, &test.second.ops, NULL));
    fb_write(conn, "bye", 3);
    fb_close(conn);
}

/* The end of the first session is like any: its protocol can change nothing any more. */
START_TEST(who_was_passed_is_not_ended_by_the_first)
{
    struct sim_socket *client;

    begin();
    pass_clients(pass);
    test.servers[0]->script.closed = end_in_closed;
    client = scripted_connect(test.fixture);
    sim_says(client, "hello");
    fixture_run(test.fixture);
    ck_assert_str_eq(sim_sent(client), "hello");
    ck_assert_uint_eq(test.second.record.openings, 1);
    end();
}
END_TEST

static void abort_in_closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)state;
    (void)reason;
    fb_abort(conn);
}

static int pass_and_refuse(fb_conn *conn, void *state)
{
    pass(conn, state);
    return 1;
}

/* Variables in the log are the logging server's; nothing is left of the server before. */
START_TEST(variables_know_their_own_server)
{
    struct sim_socket *client;

    begin();
    test.tells = true;
    pass_clients(_i == 0 ? pass : pass_and_refuse);
    add_limit(0, 1);
    client = scripted_connect(test.fixture);
    if (_i == 0)
        sim_end(client);
    fixture_run(test.fixture);
    ck_assert(client->closed);
    ck_assert_str_eq(test.told, _i == 0 ? "192.0.2.80 -" : "192.0.2.7 PASSED");
    end();
}
END_TEST

/* A passed client counts once for both servers, and for the limits of both. */
START_TEST(who_was_passed_is_counted_once)
{
    struct sim_socket *clients[3];
    struct limit_values *values;

    begin();
    pass_clients(pass);
    add_limit(0, 3);
    add_limit(1, 2);
    for (unsigned i = 0; i < 2; i++) {
        test.rates[i] = (struct limit_rule) { .zone = &test.zone,
            .rate = { .interval_ns = SECOND, .burst_ns = 2 * SECOND } };
        values = server_feature(&test.servers[i]->server, FEATURE_LIMIT_CONN);
        values->rates = &test.rates[i];
    }
    for (unsigned i = 0; i < 3; i++) {
        clients[i] = scripted_connect(test.fixture);
        fixture_run(test.fixture);
    }
    ck_assert(!clients[0]->closed && !clients[1]->closed && clients[2]->closed);
    ck_assert_uint_eq(test.second.record.openings, 2);
    ck_assert_ptr_nonnull(strstr(fixture_logged(test.fixture),
        "limiting connections by zone \"zone\" while initializing session"));
    sim_end(clients[0]);
    fixture_run(test.fixture);
    fixture_pass(test.fixture, 1000);
    clients[2] = scripted_connect(test.fixture);
    fixture_run(test.fixture);
    ck_assert(!clients[2]->closed);
    end();
}
END_TEST

START_TEST(the_first_may_still_abort)
{
    struct sim_socket *client;

    begin();
    pass_clients(pass);
    test.servers[0]->script.closed = abort_in_closed;
    client = scripted_connect(test.fixture);
    ck_assert(client->closed && client->reset);
    ck_assert_uint_eq(test.second.record.openings + test.second.record.closings, 0);
    ck_assert_uint_eq(test.logs, 1);
    end();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_protocol_is_not_asked_before_it_has_the_client, 0, 2);
    tcase_add_loop_test(tcase, no_end_without_a_beginning, 0, 8);
    tcase_add_test(tcase, without_memory_no_limit_is_passed);
    tcase_add_test(tcase, output_leaves_while_the_next_header_is_awaited);
    tcase_add_test(tcase, who_was_passed_is_not_ended_by_the_first);
    tcase_add_loop_test(tcase, variables_know_their_own_server, 0, 2);
    tcase_add_test(tcase, who_was_passed_is_counted_once);
    tcase_add_test(tcase, the_first_may_still_abort);
}

TEST_MAIN("session_ways", add_tests)

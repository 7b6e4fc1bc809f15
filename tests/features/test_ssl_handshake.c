/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients in the phase of the TLS handshake: how their bytes come, and the phases and servers
 * around. */
#include "features/handshakes.h"
#include "features/hello.h"

#include "features/preread/preread.h"

/* ---- How bytes come ---- */

START_TEST(a_client_shakes_hands)
{
    struct tls_client *client;

    begin_tls(TLS_LINK_LOCAL);
    client = connect_client();
    ck_assert_uint_eq(accesses, 1);
    tls_client_shake(client, test.fixture);
    ck_assert_int_eq(client->step, TLS_DONE);
    ck_assert_uint_eq(openings(), 1);
    ck_assert_uint_eq(fb_received(test.servers[0]->record.conn), 0);
    tls_client_add(client, "hello");
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert_str_eq(sealing_sent(&client->peer), "hello");
    sealing_add_close(&client->peer);
    sealing_say(&client->peer);
    sim_end(client->socket);
    fixture_run(test.fixture);
    sealing_look(&client->peer);
    ck_assert(client->peer.closed && !client->socket->reset);
    expect_end(client, "200;finished;5;5;304", "bytes from/to client:5/5");
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* The client's flight, cut at each byte, with data behind the last message. */
START_TEST(bytes_may_come_in_parts)
{
    bool done = false;

    for (size_t n = 0; !done; n++) {
        struct tls_client *client;

        begin_tls(TLS_LINK_LOCAL);
        client = connect_client();
        tls_client_say(client, _i == 0 ? n : SIZE_MAX);
        fixture_run(test.fixture);
        tls_client_say(client, SIZE_MAX);
        fixture_run(test.fixture);
        tls_client_look(client);
        tls_client_add(client, "hello");
        done = _i == 0 ? n > 100 : n > client->waiting.n;
        tls_client_say(client, n);
        fixture_run(test.fixture);
        tls_client_say(client, SIZE_MAX);
        fixture_run(test.fixture);
        ck_assert_str_eq(sealing_sent(&client->peer), "hello");
        ck_assert_uint_eq(openings(), 1);
        ck_assert_uint_eq(accesses, 1);
        ck_assert_uint_eq(fb_received(test.servers[0]->record.conn), 5);
        tls_client_destroy(&client);
        end_tls();
    }
}
END_TEST

START_TEST(bytes_may_come_one_by_one)
{
    struct tls_client *client;

    begin_tls(TLS_LINK_LOCAL);
    client = connect_client();
    for (unsigned i = 0; i < 1000 && !(client->step == TLS_DONE && client->waiting.n == 0); i++) {
        if (_i == 0)
            tls_client_say(client, 1);
        while (_i == 1 && client->waiting.n > 0) /* at once, in receives of a byte */
            tls_client_say(client, 1);
        fixture_run(test.fixture);
        tls_client_look(client);
        if (client->step == TLS_DONE && client->peer.out.sequence == 0)
            tls_client_add(client, "hello");
    }
    ck_assert_str_eq(sealing_sent(&client->peer), "hello");
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* Data of more than a receive takes lie behind the last message. */
START_TEST(much_may_lie_behind)
{
    const size_t n = 5 * TLS_FEED_MOST;
    struct tls_client *client;

    begin_tls(TLS_LINK_LOCAL);
    client = connect_client();
    client->socket->lends = _i == 1;
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    tls_client_look(client);
    tls_client_say(client, client->waiting.n - 1);
    if (_i == 0)
        fixture_run(test.fixture);
    sealing_add_data(&client->peer, sealing_pattern(), n, 1000);
    client->waiting.p = realloc(client->waiting.p, client->waiting.n + client->peer.sealed.n + 1);
    memcpy(client->waiting.p + client->waiting.n, client->peer.sealed.p, client->peer.sealed.n);
    client->waiting.n += client->peer.sealed.n;
    client->peer.sealed.n = 0;
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert(sealing_sent_pattern(&client->peer, n));
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* Input beyond one request waits for the next. */
START_TEST(requests_have_a_limit)
{
    struct tls_reply reply = { .used = TLS_FEED_MOST };
    static uint8_t much[2 * TLS_FEED_MOST + 100];
    struct tls_client *client;

    begin_tls(TLS_LINK_HELD);
    client = connect_client();
    sim_say(client->socket, much, sizeof(much));
    for (unsigned i = 0; i < 2; i++) {
        fixture_run(test.fixture);
        ck_assert_uint_eq(tls_held_n(), 1);
        tls_reply_held_by(TLS_MORE, &reply);
    }
    fixture_run(test.fixture);
    ck_assert_uint_eq(tls_held_n(), 1);
    reply.used = 50;
    strcpy(reply.text, "nonsense");
    tls_reply_held_by(TLS_FAILED, &reply);
    fixture_run(test.fixture);
    expect_end(client, "500;tls_failed;0;0;0", "nonsense" CONTEXT);
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* ---- Phases before and behind ---- */

START_TEST(a_header_comes_before)
{
    size_t most = sizeof(LINE) - 1;

    for (size_t n = 0; n <= most + 20; n++) {
        struct tls_client *client;
        uint8_t all[500];
        size_t all_n;

        begin_tls(TLS_LINK_LOCAL);
        test.servers[0]->binding.ops = &proxy_protocol_ops;
        client = connect_client();
        ck_assert_uint_eq(accesses, 0);
        memcpy(all, LINE, most);
        memcpy(all + most, client->waiting.p, client->waiting.n);
        all_n = most + client->waiting.n;
        client->waiting.n = 0;
        if (n > 0)
            sim_say(client->socket, all, n);
        fixture_run(test.fixture);
        ck_assert_uint_eq(accesses, n >= most);
        sim_say(client->socket, all + n, all_n - n);
        fixture_run(test.fixture);
        tls_client_look(client);
        tls_client_add(client, "hello");
        tls_client_say(client, SIZE_MAX);
        fixture_run(test.fixture);
        ck_assert_str_eq(sealing_sent(&client->peer), "hello");
        ck_assert_uint_eq(accesses, 1);
        tls_end(test.fixture);
        ck_assert_str_eq(seen, "200;shutdown;5;5;304");
        tls_client_destroy(&client);
        end();
    }
}
END_TEST

/* Plaintext is looked at: a ClientHello within TLS. */
START_TEST(preread_comes_behind)
{
    struct hello hello = hello_of(HELLO_NAME, sizeof(HELLO_NAME) - 1);
    struct preread_values *values;
    struct tls_client *client;
    struct variable *name;

    begin_tls(TLS_LINK_LOCAL);
    values = server_feature(&test.servers[0]->server, FEATURE_PREREAD);
    *values = (struct preread_values) { .timeout = TIMEOUT, .buffer_size = 16384 };
    add_before(0, PHASE_PREREAD, preread_begin, NULL);
    name = use("ssl_preread_server_name");
    client = connect_client();
    tls_client_shake(client, test.fixture);
    ck_assert_uint_eq(openings(), 0);
    sealing_add_data(&client->peer, hello.p, hello.n, _i == 0 ? hello.n : 7);
    sealing_say(&client->peer);
    fixture_run(test.fixture);
    ck_assert_uint_eq(openings(), 1);
    sealing_look(&client->peer);
    ck_assert_uint_eq(client->peer.plain.n, hello.n);
    ck_assert_mem_eq(client->peer.plain.p, hello.p, hello.n);
    ck_assert_uint_eq(variable_value(test.servers[0]->record.conn, name)->n, 9);
    ck_assert_uint_eq(accesses, 1);
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

START_TEST(who_may_not_come_is_not_heard)
{
    struct tls_client *client;

    begin_servers(1, TLS_LINK_LOCAL);
    add_before(0, PHASE_ACCESS, refuse, NULL);
    add_handshake(0);
    client = connect_client();
    ck_assert_uint_eq(client->socket->sent_n, 0);
    expect_end(client, "403;denied;0;0;0", "");
    tls_client_destroy(&client);
    end_tls();

    begin_servers(1, TLS_LINK_LOCAL);
    add_limit(0, 1);
    add_handshake(0);
    client = connect_client();
    ck_assert(scripted_connect(test.fixture)->closed); /* the first shakes hands */
    ck_assert_str_eq(seen, "503;limit;0;0;0");
    tls_client_destroy(&client);
    log_so_far();
    end_tls();
}
END_TEST

/* From a server without TLS, or with, to one without, or with. */
START_TEST(a_client_is_passed_on)
{
    struct tls_client *client;

    begin_servers((unsigned)_i & 3, TLS_LINK_LOCAL);
    for (unsigned i = 0; i < 2; i++) {
        if (_i & 4)
            set_times(&test.servers[i]->server, true);
        if (_i >> i & 1)
            add_handshake(i);
    }
    pass_clients(pass);
    client = tls_client_create(scripted_connect(test.fixture));
    fixture_run(test.fixture);
    ck_assert_uint_eq(openings(), (_i & 1) == 0);
    tls_client_shake(client, test.fixture);
    ck_assert_int_eq(client->step, TLS_DONE);
    ck_assert_uint_eq(test.second.record.openings, 1);
    tls_client_add(client, "hello");
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert_str_eq(sealing_sent(&client->peer), "hello");
    tls_end(test.fixture);
    ck_assert_str_eq(seen, "200;shutdown;5;5;304");
    tls_client_destroy(&client);
    end();
}
END_TEST

static int write_much_and_pass(fb_conn *conn, void *state)
{
    fb_write(conn, sealing_pattern(), 200000);
    return pass(conn, state);
}

/* Plaintext that a server has written before the pass leaves before the first flight. */
START_TEST(output_leaves_before_the_handshake)
{
    struct tls_client *client;
    struct sim_socket *socket;

    begin_servers(2, TLS_LINK_LOCAL);
    add_handshake(1);
    pass_clients(write_much_and_pass);
    socket = scripted_connect_slow(test.fixture, 1000);
    client = tls_client_create(socket);
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    sim_set_room(socket, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert_uint_gt(socket->sent_n, 200000);
    ck_assert_mem_eq(socket->sent, sealing_pattern(), 200000);
    client->peer.taken = 200000;
    tls_client_shake(client, test.fixture);
    tls_client_add(client, "hello");
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert_str_eq(sealing_sent(&client->peer), "hello");
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

static int greet(fb_conn *conn, void *state)
{
    (void)state;
    fb_write(conn, "hello", 5);
    return 0;
}

/* The rest that the engine has to send leaves before any record. */
START_TEST(the_last_flight_comes_first)
{
    static uint8_t flight[] = "the last flight of the engine";

    for (size_t room = 0; room < 2 * sizeof(flight); room++) {
        struct tls_reply reply = {
            .used = 1,
            .out = flight,
            .out_n = sizeof(flight),
            .session = { .version = TLS_1_3, .plain_most = 1000 },
        };
        struct tls_client *client;

        begin_tls(TLS_LINK_HELD);
        test.servers[0]->script.opened = greet;
        client = connect_client();
        sim_set_room(client->socket, room);
        sim_says(client->socket, "x");
        fixture_run(test.fixture);
        tls_reply_held_by(TLS_DONE, &reply);
        fixture_run(test.fixture);
        sim_set_room(client->socket, SIZE_MAX);
        fixture_run(test.fixture);
        ck_assert_uint_eq(client->socket->sent_n, sizeof(flight) + TLS_HEADER + 5 + 1 + CIPHER_TAG);
        ck_assert_mem_eq(client->socket->sent, flight, sizeof(flight));
        ck_assert_uint_eq(fb_sent(test.servers[0]->record.conn), 5);
        tls_client_destroy(&client);
        end_tls();
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_client_shakes_hands);
    tcase_add_loop_test(tcase, bytes_may_come_in_parts, 0, 2);
    tcase_add_loop_test(tcase, bytes_may_come_one_by_one, 0, 2);
    tcase_add_loop_test(tcase, much_may_lie_behind, 0, 3);
    tcase_add_test(tcase, requests_have_a_limit);
    tcase_add_test(tcase, a_header_comes_before);
    tcase_add_loop_test(tcase, preread_comes_behind, 0, 2);
    tcase_add_test(tcase, who_may_not_come_is_not_heard);
    tcase_add_test(tcase, output_leaves_before_the_handshake);
    tcase_add_test(tcase, the_last_flight_comes_first);
    tcase_add_loop_test(tcase, a_client_is_passed_on, 1, 4);
    tcase_add_loop_test(tcase, a_client_is_passed_on, 5, 8);
}

TEST_MAIN("ssl_handshake", add_tests)

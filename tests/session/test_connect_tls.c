/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers by TLS: what comes before `opened`, the server's name and certificate, and
 * the ends without a handshake. */
#include "session/connecting.h"

/* ---- Before and behind the handshake ---- */

START_TEST(the_handshake_comes_before_opened)
{
    struct told told;
    struct tls_client *peer;

    start(TLS_LINK_LOCAL);
    sim_server_answer(server, SIM_SILENT, 0);
    ask(&told, with_header());
    fb_write(told.conn, "early, ", 7);
    fixture_settle(test.fixture);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    peer = accept_connection();
    ck_assert(session_is_securing(told.conn));
    fb_write(told.conn, "later", 5);
    fixture_settle(test.fixture);
    ck_assert_uint_gt(peer->socket->sent_n, 7);
    ck_assert_mem_eq(peer->socket->sent, "PROXY\r\n", 7);
    peer->peer.taken = 7;
    ck_assert_uint_eq(told.openings, 0);
    shake(peer);
    ck_assert_uint_eq(told.openings, 1);
    tls_client_look(peer);
    ck_assert_str_eq(sealing_sent(&peer->peer), "early, later");
    sealing_says(&peer->peer, "answer");
    fixture_run(test.fixture);
    ck_assert_str_eq(told.heard, "answer");
    ck_assert_uint_eq(fb_received(told.conn), 6);
    fb_close(told.conn);
    fixture_settle(test.fixture);
    fixture_run(test.fixture);
    sealing_look(&peer->peer);
    ck_assert(peer->peer.closed);
    sim_end(peer->socket);
    tls_client_destroy(&peer);
    finish();
}
END_TEST

/* By pieces of any length, of either end. */
START_TEST(the_server_s_bytes_may_come_in_pieces)
{
    uint64_t seed = random_seed() + (uint64_t)_i;
    struct told told;
    struct tls_client *peer;

    start(TLS_LINK_LOCAL);
    ask(&told, with());
    peer = accept_connection();
    sim_set_room(peer->socket, 1 + sim_draw(&seed, 200));
    for (unsigned i = 0; i < 2000 && told.openings == 0; i++) {
        tls_client_look(peer);
        tls_client_say(peer, 1 + sim_draw(&seed, 7));
        fixture_run(test.fixture);
        sim_take(peer->socket, sim_draw(&seed, (uint32_t)peer->socket->queued + 1));
        fixture_run(test.fixture);
    }
    ck_assert_uint_eq(told.openings, 1);
    sim_set_room(peer->socket, SIZE_MAX);
    fixture_run(test.fixture);
    tls_client_look(peer);
    ck_assert_int_eq(peer->step, TLS_DONE);
    tls_client_destroy(&peer);
    finish();
}
END_TEST

/* Output never leaves in plain. */
START_TEST(a_connection_may_be_closed_early)
{
    struct told told;
    struct sim_socket *socket;

    start(TLS_LINK_LOCAL);
    sim_server_answer(server, SIM_SILENT, 0);
    ask(&told, with());
    fb_write(told.conn, "secret", 6);
    fixture_settle(test.fixture);
    if (_i == 1) {
        sim_server_answer(server, SIM_ACCEPTS, 0);
        fixture_run(test.fixture);
    }
    fb_close(told.conn);
    fixture_settle(test.fixture);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    socket = sim_server_take(server);
    ck_assert_int_eq(_i, socket != NULL);
    if (socket != NULL)
        sim_end(socket);
    fixture_run(test.fixture);
    ck_assert_uint_eq(told.openings, 0);
    ck_assert_uint_eq(told.closings, 1);
    ck_assert(socket == NULL || memmem(socket->sent, socket->sent_n, "secret", 6) == NULL);
    finish();
}
END_TEST

START_TEST(replies_may_come_late)
{
    struct told told;
    struct tls_client *peer;

    start(TLS_LINK_HELD);
    ask(&told, with());
    fixture_run(test.fixture);
    ck_assert_uint_eq(tls_held_n(), 1);
    ck_assert_uint_eq(tls_held_profile(), 1);
    peer = accept_connection();
    ck_assert_uint_eq(peer->socket->sent_n, 0);
    tls_reply_held();
    shake(peer);
    ck_assert_uint_eq(told.openings, 0);
    tls_reply_held();
    shake(peer);
    ck_assert_uint_eq(told.openings, 1);
    tls_client_destroy(&peer);
    finish();
}
END_TEST

/* Variables of a client choose files: no client may bring a server into disrepute. */
START_TEST(no_server_is_to_blame_for_a_file)
{
    struct tls_reply reply = { .severe = _i == 1, .text = "cannot load it" };
    struct told told;

    start(TLS_LINK_HELD);
    ask(&told, with());
    fixture_run(test.fixture);
    tls_reply_held_by(TLS_FAILED, &reply);
    fixture_run(test.fixture);
    expect_failure(&told, FB_TLS_FAILED, "cannot load it" UPSTREAM);
    ck_assert_int_eq(told.error, _i == 1 ? EAGAIN : 0);
    finish();
}
END_TEST

/* ---- The server's certificate ---- */

static void fail_by_name(const char *name, const char *line)
{
    struct told told;
    struct tls_client *peer;

    ask(&told, with_name(name));
    peer = accept_connection();
    shake(peer);
    expect_failure(&told, FB_TLS_FAILED, line);
    tls_client_destroy(&peer);
}

START_TEST(a_server_has_to_be_the_one_of_the_name)
{
    struct told told;
    struct tls_client *peer;

    start(TLS_LINK_LOCAL);
    fail_by_name("two.tests", "upstream SSL certificate does not match \"two.tests\"" CONNECTION);
    fail_by_name("", "upstream SSL certificate does not match \"\"" CONNECTION);
    fail_by_name("unix:/one.tests", "upstream SSL certificate does not match \"\"" CONNECTION);
    tls_profiles[1].trusted = TLS_NO_FILE;
    fail_by_name("one.tests",
        "upstream SSL certificate verify error: (18:self-signed certificate)" CONNECTION);
    tls_profiles[1].verify = TLS_VERIFY_OFF;
    peer = open_connection(&told, with_name("any"));
    tls_client_destroy(&peer);
    finish();
}
END_TEST

START_TEST(a_port_is_no_part_of_the_name)
{
    struct told told;
    struct tls_client *peer;

    start(TLS_LINK_LOCAL);
    peer = open_connection(&told, with_name("one.tests:443"));
    tls_client_destroy(&peer);
    fail_by_name("2001:db8::1", "does not match \"2001:db8::1\"" CONNECTION);
    fail_by_name("[2001:db8::1]:443", "does not match \"2001:db8::1\"" CONNECTION);
    finish();
}
END_TEST

START_TEST(a_name_has_a_limit)
{
    static const fb_ops no_ops = { .size = sizeof(fb_ops) };
    char name[TLS_NAME_MOST + 2];
    fb_connect_options options;

    memset(name, 'a', TLS_NAME_MOST + 1);
    name[TLS_NAME_MOST + 1] = '\0';
    options = with_name(name);
    start(TLS_LINK_LOCAL);
    options.owner = test.servers[0]->record.conn;
    ck_assert_ptr_null(backend_connect_with(
        test.fixture->stream, NULL, &target, false, &connect_ops, NULL, &options));
    ck_assert_ptr_nonnull(strstr(log_so_far(), "the name of a server has more than 255 bytes"));
    options.tls_name.n--;
    ck_assert_ptr_nonnull(
        backend_connect_with(test.fixture->stream, NULL, &target, false, &no_ops, NULL, &options));
    fixture_run(test.fixture);
    finish();
}
END_TEST

/* ---- Ends without a handshake ---- */

START_TEST(a_server_refuses)
{
    struct told told;
    struct tls_client *peer;

    start(TLS_LINK_LOCAL);
    tls_profiles[0].reject = true;
    ask(&told, with());
    peer = accept_connection();
    shake(peer);
    sim_end(peer->socket);
    fixture_run(test.fixture);
    expect_failure(&told, FB_TLS_FAILED, UPSTREAM);
    tls_client_destroy(&peer);
    finish();
}
END_TEST

/* The server ends, breaks the connection, or does not speak TLS. */
START_TEST(a_server_gives_up)
{
    static const struct {
        fb_reason reason;
        const char *line;
    } rows[] = {
        { FB_PEER_GONE, "[error] *1 peer closed connection in SSL handshake" UPSTREAM },
        { FB_RESET, "[error] *1 peer broke the connection in SSL handshake (104: " },
        { FB_TLS_FAILED, UPSTREAM },
    };
    struct told told;
    struct tls_client *peer;

    start(TLS_LINK_LOCAL);
    ask(&told, with());
    peer = accept_connection();
    if (_i == 0)
        sim_end(peer->socket);
    else if (_i == 1)
        sim_break(peer->socket, ECONNRESET);
    else
        sim_says(peer->socket, "220 plain.tests ESMTP\r\n");
    fixture_run(test.fixture);
    if (_i == 2)
        sim_end(peer->socket);
    fixture_run(test.fixture);
    expect_failure(&told, rows[_i].reason, rows[_i].line);
    tls_client_destroy(&peer);
    finish();
}
END_TEST

START_TEST(the_handshake_has_the_time_once_more)
{
    struct told told;
    struct tls_client *peer;

    start(TLS_LINK_LOCAL);
    sim_server_answer(server, SIM_SILENT, 0);
    ask(&told, with());
    fixture_pass(test.fixture, CONNECT_MS - 1);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    peer = accept_connection();
    fixture_pass(test.fixture, CONNECT_MS - 1);
    ck_assert_uint_eq(told.closings, 0);
    fixture_pass(test.fixture, 1);
    expect_failure(&told, FB_TLS_TIMED_OUT,
        "[error] *1 upstream timed out (110: Connection timed out)" UPSTREAM);
    tls_client_destroy(&peer);
    finish();
}
END_TEST

START_TEST(a_connection_ends_with_its_client)
{
    struct told told;
    struct tls_client *peer;

    start(_i == 0 ? TLS_LINK_LOCAL : TLS_LINK_HELD);
    ask(&told, with());
    peer = accept_connection();
    sim_reset(client_socket, ECONNRESET);
    fixture_run(test.fixture);
    ck_assert_uint_eq(told.closings, 1);
    ck_assert_int_eq(told.reason, FB_ABORTED);
    while (_i == 1 && tls_held_n() > 0)
        tls_reply_held();
    fixture_run(test.fixture);
    tls_client_destroy(&peer);
    finish();
}
END_TEST

/* Every request for memory fails once: the connection, or the session, ends in order. */
START_TEST(memory_runs_out)
{
    struct told told = { 0 };
    struct tls_client *peer = NULL;
    fb_connect_options options = with();
    struct sim_socket *socket;

    start(TLS_LINK_LOCAL);
    test.fixture->memory.until_failure = (unsigned)_i;
    test.fixture->memory.failures_max = 1;
    options.owner = test.servers[0]->record.conn;
    told.conn = backend_connect_with(
        test.fixture->stream, NULL, &target, false, &connect_ops, &told, &options);
    fixture_settle(test.fixture);
    fixture_run(test.fixture);
    socket = sim_server_take(server);
    if (socket != NULL) {
        peer = tls_server_create(socket);
        shake(peer);
    }
    ck_assert(told.conn == NULL || told.openings == 1);
    ck_assert_uint_le(told.openings + told.closings, 2);
    test.fixture->memory.until_failure = UINT_MAX;
    if (peer != NULL)
        tls_client_destroy(&peer);
    finish();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, no_server_is_to_blame_for_a_file, 0, 2);
    tcase_add_test(tcase, the_handshake_comes_before_opened);
    tcase_add_loop_test(tcase, the_server_s_bytes_may_come_in_pieces, 0, 20);
    tcase_add_loop_test(tcase, a_connection_may_be_closed_early, 0, 2);
    tcase_add_test(tcase, replies_may_come_late);
    tcase_add_test(tcase, a_server_has_to_be_the_one_of_the_name);
    tcase_add_test(tcase, a_port_is_no_part_of_the_name);
    tcase_add_test(tcase, a_name_has_a_limit);
    tcase_add_test(tcase, a_server_refuses);
    tcase_add_loop_test(tcase, a_server_gives_up, 0, 3);
    tcase_add_test(tcase, the_handshake_has_the_time_once_more);
    tcase_add_loop_test(tcase, a_connection_ends_with_its_client, 0, 2);
    tcase_add_loop_test(tcase, memory_runs_out, 0, 8);
}

TEST_MAIN("connect_tls", add_tests)

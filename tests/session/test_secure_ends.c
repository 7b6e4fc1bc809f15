/* SPDX-License-Identifier: BSD-2-Clause */
/* The ends of a handshake within a session: by time, by the client, by the protocol, and without
 * memory. */
#include "session/securing.h"

START_TEST(the_handshake_has_a_time)
{
    begin_session(TLS_LINK_LOCAL);
    go();
    fixture_pass(test.fixture, TIMEOUT - 1);
    tls_client_say(client, 5); /* bytes that move gain no time */
    fixture_run(test.fixture);
    ck_assert(!client->socket->closed);
    fixture_pass(test.fixture, 1);
    ck_assert_int_eq(test.servers[0]->record.reason, FB_TLS_TIMED_OUT);
    expect_end(client, "500;timeout;3;6;0", "client timed out");
    finish();
}
END_TEST

/* A client that does not take the alert is closed after the time of the handshake. */
START_TEST(a_refused_client_cannot_stay)
{
    struct sim_socket *socket;

    begin_session(TLS_LINK_LOCAL);
    socket = scripted_connect_slow(test.fixture, 7);
    sim_says(socket, "go\nnonsense of a client");
    fixture_run(test.fixture);
    fixture_pass(test.fixture, TIMEOUT - 1);
    ck_assert(!socket->closed);
    fixture_pass(test.fixture, 1);
    ck_assert(socket->closed);
    ck_assert_int_eq(test.servers[0]->record.reason, FB_TLS_FAILED);
    finish();
}
END_TEST

START_TEST(the_client_may_go)
{
    begin_session(TLS_LINK_LOCAL);
    go();
    if (_i == 1) {
        tls_client_say(client, 4);
        fixture_run(test.fixture);
    }
    sim_end(client->socket);
    fixture_run(test.fixture);
    ck_assert_int_eq(test.servers[0]->record.reason, FB_PEER_GONE);
    expect_end(client, "200;tls_failed;3;6;0", "peer closed connection in SSL handshake");
    finish();
}
END_TEST

/* An end with a reply under way, and a reply that comes late. */
START_TEST(the_session_may_end_meanwhile)
{
    begin_session(TLS_LINK_HELD);
    go();
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert_uint_eq(tls_held_n(), 1);
    if (_i == 0) {
        fb_abort(conn_of_session());
        fixture_settle(test.fixture);
        ck_assert(client->socket->closed);
    } else {
        fb_close(conn_of_session());
    }
    tls_reply_held();
    fixture_run(test.fixture);
    ck_assert(client->socket->closed && dones == 0);
    finish();
}
END_TEST

START_TEST(memory_may_be_short)
{
    bool done = false;

    for (unsigned n = 0; !done; n++) {
        begin_session(TLS_LINK_LOCAL);
        meanwhile = write_meanwhile;
        options = NULL;
        test.servers[0]->script.data = NULL;
        client = tls_client_create(scripted_connect(test.fixture));
        test.fixture->memory.until_failure = n;
        test.fixture->memory.failures_max = 1;
        if (session_secure_begin(conn_of_session(), &server_role) == 0) {
            fb_write(conn_of_session(), "abc", 3);
            fixture_settle(test.fixture);
            tls_client_shake(client, test.fixture);
            done = test.fixture->memory.failures == 0;
        } else {
            ck_assert_int_ne(conn_of_session()->session_phase, SESSION_SECURING);
        }
        if (done)
            ck_assert_str_eq(sealing_sent(&client->peer), "abc");
        test.fixture->memory.until_failure = UINT_MAX;
        finish();
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_handshake_has_a_time);
    tcase_add_test(tcase, a_refused_client_cannot_stay);
    tcase_add_loop_test(tcase, the_client_may_go, 0, 2);
    tcase_add_loop_test(tcase, the_session_may_end_meanwhile, 0, 2);
    tcase_add_test(tcase, memory_may_be_short);
}

TEST_MAIN("secure_ends", add_tests)

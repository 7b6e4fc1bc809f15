/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS that begins within a session: the order of bytes around the begin, and what the protocol does
 * while the handshake is made. */
#include "session/securing.h"

#include "session/idle.h"

/* ---- The order of bytes ---- */

START_TEST(a_session_goes_on_with_tls)
{
    begin_session(TLS_LINK_LOCAL);
    go();
    tls_client_shake(client, test.fixture);
    ck_assert_int_eq(client->step, TLS_DONE);
    ck_assert_uint_eq(dones, 1);
    tls_client_add(client, "more\n");
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert_str_eq(heard, "go,more,");
    ck_assert_uint_eq(fb_received(conn_of_session()), 8);
    ck_assert_uint_eq(fb_sent(conn_of_session()), 6);
    fb_write(conn_of_session(), "yes", 3);
    fixture_settle(test.fixture);
    ck_assert_str_eq(sealing_sent(&client->peer), "yes");
    sealing_add_close(&client->peer);
    sealing_say(&client->peer);
    sim_end(client->socket);
    fixture_run(test.fixture);
    expect_end(client, "200;finished;8;9;0", "bytes from/to client:8/9");
    finish();
}
END_TEST

/* The ClientHello comes in one piece with the command, cut anywhere, and never reaches the
 * protocol. */
START_TEST(the_hello_may_lie_behind_the_command)
{
    size_t n = SIZE_MAX;

    for (size_t cut = 0; cut <= n; cut++) {
        uint8_t all[500] = "go\n";

        begin_session(TLS_LINK_LOCAL);
        client = tls_client_create(scripted_connect(test.fixture));
        client->peer.taken = 6;
        n = 3 + client->waiting.n;
        ck_assert_uint_lt(n, sizeof(all));
        memcpy(all + 3, client->waiting.p, client->waiting.n);
        client->waiting.n = 0;
        if (cut > 0)
            sim_say(client->socket, all, cut);
        if (_i == 0)
            fixture_run(test.fixture);
        if (cut < n)
            sim_say(client->socket, all + cut, n - cut);
        fixture_run(test.fixture);
        tls_client_look(client);
        ck_assert_int_eq(client->step, TLS_DONE);
        tls_client_add(client, "in tls\n");
        tls_client_say(client, SIZE_MAX);
        fixture_run(test.fixture);
        ck_assert_str_eq(heard, "go,in tls,");
        ck_assert_uint_eq(fb_received(conn_of_session()), 10);
        finish();
    }
}
END_TEST

static int prepare_outcome;

/* Wants nine bytes of the client, and then has the outcome. */
static int prepare_by_bytes(
    struct fb_conn *conn, struct tls_hello *hello, fb_bytes in, struct tls_start *start)
{
    ck_assert_ptr_eq(conn, conn_of_session());
    ck_assert_int_eq(start->role, TLS_SERVER);
    ck_assert_int_eq(hello->status, TLS_HELLO_MORE);
    return in.n < 9 ? 0 : prepare_outcome;
}

/* What depends on the ClientHello is prepared once, or ends the session. */
START_TEST(the_start_may_need_the_hello)
{
    static struct session_secure_options prepared;

    begin_session(TLS_LINK_LOCAL);
    prepared = server_role;
    prepared.prepare = prepare_by_bytes;
    prepare_outcome = _i == 0 ? 1 : -1;
    options = &prepared;
    go();
    tls_client_say(client, 8);
    fixture_run(test.fixture);
    ck_assert(!client->socket->closed);
    if (_i == 0) {
        tls_client_shake(client, test.fixture);
        ck_assert_int_eq(client->step, TLS_DONE);
        ck_assert_uint_eq(dones, 1);
    } else {
        tls_client_say(client, SIZE_MAX);
        fixture_run(test.fixture);
        expect_end(client, "500;tls_failed;3;6;0", "bytes from/to client:3/6");
    }
    finish();
}
END_TEST

/* A command that follows in plain is no record: an alert, and nothing reaches the protocol. */
START_TEST(plaintext_behind_the_command_is_refused)
{
    struct sim_socket *socket;

    begin_session(TLS_LINK_LOCAL);
    socket = scripted_connect(test.fixture);
    if (_i == 1) { /* in parts */
        sim_says(socket, "go\nsm");
        fixture_run(test.fixture);
        sim_says(socket, "uggled\nmore\n");
    } else {
        sim_says(socket, "go\nsmuggled\nmore\n");
    }
    fixture_run(test.fixture);
    sim_end(socket);
    fixture_run(test.fixture);
    ck_assert_str_eq(heard, "go,");
    ck_assert_uint_ge(socket->sent_n, 6 + 7);
    ck_assert_uint_eq((uint8_t)socket->sent[6], TLS_ALERT);
    ck_assert(socket->closed && !socket->reset);
    ck_assert_str_eq(seen, "500;tls_failed;3;6;0");
    ck_assert_int_eq(test.servers[0]->record.reason, FB_TLS_FAILED);
    ck_assert_uint_eq(dones, 0);
    ck_assert_ptr_nonnull(strstr(log_so_far(), CONTEXT));
    finish();
}
END_TEST

static unsigned released;

static void note_release(void *arg)
{
    (void)arg;
    released++;
}

START_TEST(output_of_meanwhile_is_sealed)
{
    begin_session(TLS_LINK_LOCAL);
    released = 0;
    meanwhile = write_meanwhile;
    go();
    ck_assert_int_eq(fb_write_ref(conn_of_session(), "def", 3, note_release, NULL), 0);
    fixture_settle(test.fixture);
    ck_assert_uint_eq(fb_unsent(conn_of_session()), 6);
    ck_assert_uint_eq(client->socket->sent_n, 6);
    ck_assert_uint_eq(released, 0);
    tls_client_shake(client, test.fixture);
    ck_assert_str_eq(sealing_sent(&client->peer), "abcdef");
    ck_assert_uint_eq(released, 1);
    ck_assert_uint_eq(fb_sent(conn_of_session()), 12);
    finish();
}
END_TEST

/* Output held up by a socket without room leaves in plain, before the bytes of the engine. */
START_TEST(output_before_leaves_in_plain)
{
    struct sim_socket *socket;

    begin_session(TLS_LINK_LOCAL);
    meanwhile = write_meanwhile;
    socket = scripted_connect_slow(test.fixture, (size_t)_i);
    client = tls_client_create(socket);
    client->peer.taken = 6;
    sim_says(socket, "go\n");
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert_uint_eq(socket->sent_n, (size_t)_i);
    sim_set_room(socket, 100000);
    fixture_run(test.fixture);
    ck_assert_mem_eq(socket->sent, "ready\n", 6);
    tls_client_look(client);
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert_str_eq(sealing_sent(&client->peer), "abc");
    ck_assert_uint_eq(fb_sent(conn_of_session()), 9);
    finish();
}
END_TEST

/* A client's hello is sent at once, behind earlier output. */
START_TEST(a_client_begins)
{
    static const struct session_secure_options client_role = {
        .start = { .role = TLS_CLIENT }, .timeout = TIMEOUT, .done = note_done
    };
    struct tls_reply reply = { .out = (uint8_t *)"hello", .out_n = 5 };
    struct sim_socket *socket;

    begin_session(TLS_LINK_HELD);
    options = &client_role;
    socket = scripted_connect(test.fixture);
    sim_says(socket, _i == 0 ? "go\n" : "go\nsmuggled\n");
    fixture_run(test.fixture);
    ck_assert_uint_eq(tls_held_n(), 1);
    tls_reply_held_by(TLS_MORE, &reply);
    fixture_run(test.fixture);
    ck_assert_uint_eq(socket->sent_n, 11);
    ck_assert_mem_eq(socket->sent, "ready\nhello", 11);
    if (_i == 0)
        sim_says(socket, "x");
    fixture_run(test.fixture);
    reply = (struct tls_reply) { .used = 1, .session = { TLS_1_3, .plain_most = 1000 } };
    tls_reply_held_by(TLS_DONE, &reply);
    fixture_run(test.fixture);
    ck_assert_uint_eq(dones, 1);
    ck_assert_str_eq(heard, "go,");
    finish();
}
END_TEST

/* ---- While the handshake is made ---- */

static void stop(fb_conn *conn)
{
    fb_stop(conn);
}

START_TEST(a_stop_has_its_effect_behind_the_handshake)
{
    begin_session(TLS_LINK_LOCAL);
    meanwhile = _i == 0 || _i == 3 ? stop : NULL;
    stops_before = _i == 1;
    go();
    if (_i == 2)
        fb_stop(conn_of_session());
    if (_i == 3)
        fb_resume(conn_of_session());
    tls_client_shake(client, test.fixture);
    ck_assert_uint_eq(dones, 1);
    tls_client_add(client, "more\n");
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert_str_eq(heard, _i == 3 ? "go,more," : "go,");
    fb_resume(conn_of_session());
    fixture_run(test.fixture);
    ck_assert_str_eq(heard, "go,more,");
    finish();
}
END_TEST

static void end_half(fb_conn *conn)
{
    fb_write(conn, "last", 4);
    fb_shutdown(conn);
    fb_write(conn, "never", 5);
}

START_TEST(our_half_ends_behind_the_handshake)
{
    begin_session(TLS_LINK_LOCAL);
    meanwhile = end_half;
    go();
    tls_client_shake(client, test.fixture);
    ck_assert_str_eq(sealing_sent(&client->peer), "last");
    ck_assert(client->peer.closed && client->socket->shut && !client->socket->closed);
    finish();
}
END_TEST

START_TEST(a_close_drops_what_is_kept)
{
    begin_session(TLS_LINK_LOCAL);
    released = 0;
    meanwhile = write_meanwhile;
    go();
    ck_assert_int_eq(fb_write_ref(conn_of_session(), "def", 3, note_release, NULL), 0);
    if (_i == 1) {
        tls_client_say(client, 3);
        fixture_run(test.fixture);
    }
    fb_close(conn_of_session());
    fixture_settle(test.fixture);
    ck_assert_uint_eq(client->socket->sent_n, 6);
    ck_assert(client->socket->closed && released == 1 && dones == 0);
    ck_assert_int_eq(test.servers[0]->record.reason, FB_FINISHED);
    ck_assert_str_eq(seen, "200;finished;3;6;0");
    finish();
}
END_TEST

static void close_it(fb_conn *conn)
{
    fb_close(conn);
}

START_TEST(the_callback_may_close)
{
    begin_session(TLS_LINK_LOCAL);
    behind = close_it;
    go();
    tls_client_shake(client, test.fixture);
    sealing_look(&client->peer);
    ck_assert(client->peer.closed && client->socket->closed && dones == 1);
    finish();
}
END_TEST

static void time_meanwhile(fb_conn *conn)
{
    fb_set_timeout(conn, 500);
    fb_set_receive_timeout(conn, 700);
}

/* The protocol's times run behind the handshake, which has a time of its own. */
START_TEST(times_begin_behind_the_handshake)
{
    begin_session(TLS_LINK_LOCAL);
    meanwhile = time_meanwhile;
    go();
    fixture_pass(test.fixture, TIMEOUT - 1);
    ck_assert_uint_eq(test.servers[0]->record.closings, 0);
    tls_client_shake(client, test.fixture);
    ck_assert_uint_eq(dones, 1);
    fixture_pass(test.fixture, 499);
    ck_assert_uint_eq(test.servers[0]->record.closings, 0);
    fixture_pass(test.fixture, 1);
    ck_assert_int_eq(test.servers[0]->record.reason, FB_TIMED_OUT);
    finish();
}
END_TEST

static void (*drained)(fb_conn *conn);
static unsigned drainings, timers;

static void note_draining(fb_conn *conn, void *state, uint64_t deadline)
{
    (void)state;
    (void)deadline;
    drainings++;
    if (drained != NULL)
        drained(conn);
}

static void note_timer(fb_conn *conn, void *state, uint32_t id)
{
    (void)state;
    (void)id;
    timers++;
    fb_write(conn, "tick", 4);
}

/* A timer and a drain reach the protocol in the midst of the handshake. */
START_TEST(other_callbacks_go_on)
{
    begin_session(TLS_LINK_LOCAL);
    drainings = timers = 0;
    drained = _i == 1 ? close_it : NULL;
    test.servers[0]->ops.draining = note_draining;
    test.servers[0]->ops.timer = note_timer;
    go();
    fb_timer(conn_of_session(), 1, 100);
    tls_client_say(client, 3);
    fixture_pass(test.fixture, 100);
    ck_assert_uint_eq(timers, 1);
    session_drain(test.fixture->stream, 0);
    fixture_settle(test.fixture);
    ck_assert_uint_eq(drainings, 1);
    if (_i == 1) {
        ck_assert(client->socket->closed);
    } else {
        tls_client_shake(client, test.fixture);
        ck_assert_str_eq(sealing_sent(&client->peer), "tick");
    }
    test.fixture->stream->draining = false;
    finish();
}
END_TEST

/* New callbacks, meanwhile, are those of the session behind the handshake. */
static size_t take_all(fb_conn *conn, void *state, fb_bytes in)
{
    (void)conn;
    (void)state;
    snprintf(heard + strlen(heard), sizeof(heard) - strlen(heard), "new %zu", in.n);
    return in.n;
}

static void become(fb_conn *conn)
{
    static fb_ops new_ops;

    new_ops = test.servers[0]->ops;
    new_ops.data = take_all;
    fb_become(conn, &new_ops, conn->state);
}

START_TEST(callbacks_may_change)
{
    begin_session(TLS_LINK_LOCAL);
    meanwhile = _i == 0 ? become : NULL;
    behind = _i == 1 ? become : NULL;
    go();
    tls_client_shake(client, test.fixture);
    tls_client_add(client, "more\n");
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert_str_eq(heard, "go,new 5");
    finish();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_session_goes_on_with_tls);
    tcase_add_loop_test(tcase, the_start_may_need_the_hello, 0, 2);
    tcase_add_loop_test(tcase, the_hello_may_lie_behind_the_command, 0, 2);
    tcase_add_loop_test(tcase, plaintext_behind_the_command_is_refused, 0, 2);
    tcase_add_test(tcase, output_of_meanwhile_is_sealed);
    tcase_add_loop_test(tcase, output_before_leaves_in_plain, 0, 6);
    tcase_add_loop_test(tcase, a_client_begins, 0, 2);
    tcase_add_loop_test(tcase, a_stop_has_its_effect_behind_the_handshake, 0, 4);
    tcase_add_test(tcase, our_half_ends_behind_the_handshake);
    tcase_add_loop_test(tcase, a_close_drops_what_is_kept, 0, 2);
    tcase_add_test(tcase, the_callback_may_close);
    tcase_add_test(tcase, times_begin_behind_the_handshake);
    tcase_add_loop_test(tcase, other_callbacks_go_on, 0, 2);
    tcase_add_loop_test(tcase, callbacks_may_change, 0, 2);
}

TEST_MAIN("secure", add_tests)

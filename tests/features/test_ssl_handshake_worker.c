/* SPDX-License-Identifier: BSD-2-Clause */
/* The worker around the phase of the TLS handshake: drains, ends, a lost engine, other times, and a
 * want of memory. */
#include "features/handshakes.h"
#include "session/idle.h"

#include "tls/link_private.h"

/* ---- The worker ---- */

START_TEST(a_drain_waits)
{
    struct tls_client *first, *second;

    begin_tls(TLS_LINK_LOCAL);
    first = connect_client();
    second = connect_client();
    tls_client_say(first, 10);
    fixture_run(test.fixture);
    session_drain(test.fixture->stream, 0);
    fixture_settle(test.fixture);
    ck_assert_uint_eq(openings(), 0);
    tls_client_shake(first, test.fixture);
    tls_client_add(first, "hello");
    tls_client_say(first, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert_str_eq(sealing_sent(&first->peer), "hello");
    fixture_pass(test.fixture, TIMEOUT);
    ck_assert(second->socket->closed && !first->socket->closed);
    tls_client_destroy(&first);
    tls_client_destroy(&second);
    log_so_far();
    end_tls();
}
END_TEST

START_TEST(the_worker_may_end)
{
    struct tls_client *client;

    begin_tls(TLS_LINK_HELD);
    client = connect_client();
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    if (_i == 0)
        tls_reply_held();
    tls_end(test.fixture);
    expect_end(client, "500;shutdown;0;0;0", "");
    tls_client_destroy(&client);
    end();
}
END_TEST

static void break_link(void)
{
    tls_link_break(test.fixture->stream->tls_link);
    fixture_run(test.fixture);
}

/* The link fails in the middle: open sessions and later handshakes go on. */
START_TEST(an_engine_may_be_lost)
{
    struct tls_client *clients[3];

    begin_tls(TLS_LINK_LOCAL);
    clients[0] = connect_client();
    tls_client_shake(clients[0], test.fixture);
    clients[1] = tls_client_create(scripted_connect(test.fixture));
    clients[2] = tls_client_create(scripted_connect(test.fixture));
    tls_client_say(clients[1], SIZE_MAX);
    if (_i == 0)
        fixture_run(test.fixture);
    else
        fixture_turn(test.fixture); /* the request waits for its turn */
    break_link();
    ck_assert(clients[1]->socket->closed);
    ck_assert_str_eq(seen, "500;tls_failed;0;0;0");
    ck_assert_ptr_nonnull(strstr(log_so_far(), "no memory for a handshake" CONTEXT));
    tls_client_shake(clients[2], test.fixture);
    for (unsigned i = 0; i < 3; i += 2) {
        tls_client_add(clients[i], "hello");
        tls_client_say(clients[i], SIZE_MAX);
        fixture_run(test.fixture);
        ck_assert_str_eq(sealing_sent(&clients[i]->peer), "hello");
    }
    for (unsigned i = 0; i < 3; i++)
        tls_client_destroy(&clients[i]);
    end_tls();
}
END_TEST

struct slow_handshake {
    struct tls_pending pending;
    unsigned mores, ends;
};

static void note_slow(
    struct tls_pending *pending, enum tls_step step, const struct tls_reply *reply)
{
    struct slow_handshake *slow = container_of(pending, struct slow_handshake, pending);

    slow->mores += step == TLS_MORE;
    slow->ends += step == TLS_FAILED;
    if (step == TLS_FAILED)
        ck_assert_str_eq(reply->text, "too many handshakes are under way");
}

/* Where the link has failed, or no place is free, a client is closed. The log has one warning. */
START_TEST(no_handshake_can_begin)
{
    static struct slow_handshake slow[TLS_HANDSHAKES_MOST];
    static const char *const refusals[] = {
        "[info] *1 no handshake can begin: the link to the keeper process has failed" CONTEXT,
        "[info] *1 no handshake can begin: too many handshakes are under way" CONTEXT,
    };
    const struct tls_start start = { .role = TLS_SERVER };
    struct tls_client *clients[2];
    struct tls_link *link;

    begin_tls(TLS_LINK_LOCAL);
    link = test.fixture->stream->tls_link;
    fixture_pass(test.fixture, 1);
    for (unsigned i = 0; _i == 1 && i < countof(slow); i++) {
        slow[i] = (struct slow_handshake) { .pending.replied = note_slow };
        ck_assert_int_eq(tls_link_begin(link, &slow[i].pending, &start), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        logged = 0;
        clients[i] = connect_client();
        link->broken = _i == 0; /* no event of it has run */
        tls_client_say(clients[i], SIZE_MAX);
        fixture_run(test.fixture);
        link->broken = false;
        expect_end(clients[i], "500;tls_failed;0;0;0", refusals[_i]);
        tls_client_destroy(&clients[i]);
    }
    if (_i == 1) {
        const char *warning = strstr(logs, "[warn] new handshakes are refused, because 1000 ");

        ck_assert_ptr_nonnull(warning);
        ck_assert_ptr_null(strstr(warning + 1, "[warn]"));
    }
    for (unsigned i = 0; _i == 1 && i < countof(slow); i++)
        tls_link_cancel(link, &slow[i].pending);
    end_tls();
}
END_TEST

/* Peers that begin handshakes and go no further do not keep others out: the oldest make room. */
START_TEST(slow_clients_make_room)
{
    static struct slow_handshake slow[2 * TLS_HANDSHAKES_MOST];
    const struct tls_start start = { .role = TLS_SERVER };
    struct tls_client *client;
    struct tls_link *link;
    unsigned ends = 0;

    begin_tls(TLS_LINK_LOCAL);
    link = test.fixture->stream->tls_link;
    for (unsigned i = 0; i < countof(slow); i++) {
        slow[i] = (struct slow_handshake) { .pending.replied = note_slow };
        ck_assert_int_eq(tls_link_begin(link, &slow[i].pending, &start), 0);
        tls_link_feed(link, &slow[i].pending, (fb_bytes) { (const uint8_t *)"\x16", 1 });
        if (i % 10 == 0)
            fixture_pass(test.fixture, 1);
    }
    fixture_run(test.fixture);
    ck_assert_ptr_nonnull(strstr(log_so_far(), "[warn] handshakes of slow clients are given up"));
    client = connect_client();
    tls_client_shake(client, test.fixture);
    ck_assert_uint_eq(openings(), 1);
    for (unsigned i = 0; i < countof(slow); i++) {
        ck_assert_uint_eq(slow[i].mores, 1);
        ck_assert(i >= TLS_HANDSHAKES_MOST || slow[i].ends == 1);
        ends += slow[i].ends;
        if (slow[i].ends == 0)
            tls_link_cancel(link, &slow[i].pending);
    }
    ck_assert_uint_gt(ends, TLS_HANDSHAKES_MOST);
    ck_assert_uint_lt(ends, TLS_HANDSHAKES_MOST + TLS_HANDSHAKES_MOST / 4);
    ck_assert_uint_eq(slow[countof(slow) - 1].ends, 0);
    tls_client_destroy(&client);
    log_so_far();
    end_tls();
}
END_TEST

START_TEST(times_go_on)
{
    struct tls_client *client;

    begin_servers(1, TLS_LINK_LOCAL);
    set_times(&test.servers[0]->server, true);
    add_handshake(0);
    tls_profiles[0].handshake_timeout = 100000;
    client = connect_client();
    fixture_pass(test.fixture, 10000); /* its lifetime */
    if (_i == 1)
        tls_client_shake(client, test.fixture);
    fixture_pass(test.fixture, 4999);
    ck_assert(!client->socket->closed);
    fixture_pass(test.fixture, 1);
    ck_assert(client->socket->closed);
    ck_assert_uint_eq(openings(), _i);
    ck_assert_str_eq(seen, _i == 0 ? "500;lifetime;0;0;0" : "200;lifetime;0;0;304");
    log_so_far();
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

static int be_idle(fb_conn *conn, void *state)
{
    (void)state;
    fb_set_idle(conn, 1);
    return 0;
}

/* Of an idle client, and one whose handshake is under way, the first makes room. */
START_TEST(idle_clients_make_room)
{
    struct tls_client *client, *second;

    begin_tls(TLS_LINK_LOCAL);
    test.servers[0]->script.opened = be_idle;
    test.fixture->stream->reclaims_idle = true;
    client = connect_client();
    tls_client_shake(client, test.fixture);
    second = tls_client_create(scripted_connect(test.fixture));
    ck_assert_uint_eq(idle_reclaim(test.fixture->stream, NULL, "the test is full"), 1);
    fixture_settle(test.fixture);
    sealing_look(&client->peer);
    ck_assert(client->peer.closed && client->socket->closed && !second->socket->closed);
    ck_assert_uint_eq(idle_reclaim(test.fixture->stream, NULL, "the test is full"), 0);
    expect_end(client, "200;reclaimed;0;0;304", "the test is full");
    tls_client_destroy(&client);
    tls_client_destroy(&second);
    end_tls();
}
END_TEST

static int close_at_once(fb_conn *conn, void *state)
{
    (void)state;
    fb_write(conn, "bye", 3);
    fb_close(conn);
    return 0;
}

START_TEST(a_protocol_may_stop_or_close)
{
    struct tls_client *client;

    begin_tls(TLS_LINK_LOCAL);
    test.servers[0]->script.opened = _i == 0 ? scripted_stop : close_at_once;
    test.servers[0]->server.settings.first_byte_timeout = 1000;
    client = connect_client();
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    tls_client_look(client);
    tls_client_add(client, "hello");
    tls_client_say(client, SIZE_MAX);
    fixture_run(test.fixture);
    ck_assert_uint_eq(test.servers[0]->record.datas, 0);
    if (_i == 0)
        fb_resume(test.servers[0]->record.conn);
    fixture_run(test.fixture);
    ck_assert_str_eq(sealing_sent(&client->peer), _i == 0 ? "hello" : "bye");
    ck_assert_uint_eq(client->peer.closed, _i == 1);
    log_so_far();
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* Every allocation may fail: the session ends, or is served. */
START_TEST(without_memory_there_is_no_session)
{
    bool done = false;

    for (unsigned n = 0; !done; n++) {
        struct tls_client *client;

        ck_assert_uint_lt(n, 100);
        begin_servers(_i & 2 ? 2 : 1, TLS_LINK_LOCAL);
        if (_i & 1)
            test.servers[0]->binding.ops = &proxy_protocol_ops;
        if (_i & 2)
            pass_clients(pass);
        add_handshake((_i & 2) != 0);
        test.fixture->memory.until_failure = n;
        client = tls_client_create(scripted_connect_slow(test.fixture, _i & 4 ? 50 : SIZE_MAX));
        if (_i & 1)
            sim_says(client->socket, LINE);
        tls_client_say(client, 20);
        fixture_run(test.fixture);
        tls_client_say(client, SIZE_MAX);
        fixture_run(test.fixture);
        sim_set_room(client->socket, _i & 4 ? 10 : SIZE_MAX);
        fixture_run(test.fixture);
        tls_client_look(client);
        if (client->step == TLS_DONE)
            tls_client_add(client, "hello");
        tls_client_say(client, client->waiting.n - 10);
        fixture_run(test.fixture);
        tls_client_say(client, SIZE_MAX);
        fixture_run(test.fixture);
        sim_set_room(client->socket, SIZE_MAX);
        fixture_run(test.fixture);
        done = test.fixture->memory.failures == 0;
        test.fixture->memory.until_failure = UINT_MAX;
        ck_assert(client->socket->closed || strcmp(sealing_sent(&client->peer), "hello") == 0);
        ck_assert(!done || !client->socket->closed);
        log_so_far();
        tls_client_destroy(&client);
        end_tls();
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_drain_waits);
    tcase_add_loop_test(tcase, the_worker_may_end, 0, 2);
    tcase_add_loop_test(tcase, an_engine_may_be_lost, 0, 2);
    tcase_add_loop_test(tcase, no_handshake_can_begin, 0, 2);
    tcase_add_test(tcase, slow_clients_make_room);
    tcase_add_loop_test(tcase, times_go_on, 0, 2);
    tcase_add_test(tcase, idle_clients_make_room);
    tcase_add_loop_test(tcase, a_protocol_may_stop_or_close, 0, 2);
    tcase_add_loop_test(tcase, without_memory_there_is_no_session, 0, 8);
}

TEST_MAIN("ssl_handshake_worker", add_tests)

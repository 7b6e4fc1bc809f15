/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers by TLS: what comes before `opened`, the server's name and certificate, the
 * ends without a handshake, and the pool, where only connections of one name and profile are alike.
 */
#include "backends/connect.h"
#include "backends/keepalive.h"
#include "features/handshakes.h"
#include "session/secure.h"
#include "support/random.h"

#include <arpa/inet.h>
#include <errno.h>

#define CONNECT_MS 5000
#define CONNECTION ", client: 192.0.2.1, server: 192.0.2.7:77, upstream: \"192.0.2.99:443\"\n"
#define UPSTREAM " while SSL handshaking to upstream" CONNECTION

/* What a connection to the server was told. */
struct told {
    fb_conn *conn;
    unsigned openings, closings;
    fb_reason reason;
    char heard[64];
};

static struct fb_target target;
static struct sim_server *server;
static struct sim_socket *client_socket;
static struct tls_pair pair;
static struct fb_tls_profile profile;

static int note_opened(fb_conn *conn, void *state)
{
    struct told *told = state;

    ck_assert(conn->source.layered && !session_is_securing(conn));
    ck_assert_uint_eq(fb_received(conn), 0);
    told->openings++;
    return 0;
}

static size_t note_data(fb_conn *conn, void *state, fb_bytes in)
{
    struct told *told = state;

    (void)conn;
    ck_assert_uint_eq(told->openings, 1);
    snprintf(told->heard + strlen(told->heard), sizeof(told->heard) - strlen(told->heard), "%.*s",
        (int)in.n, in.p);
    return in.n;
}

static void note_closed(fb_conn *conn, void *state, fb_reason reason)
{
    struct told *told = state;

    (void)conn;
    told->conn = NULL;
    told->closings++;
    told->reason = reason;
}

static const fb_ops connect_ops = {
    .size = sizeof(fb_ops), .opened = note_opened, .data = note_data, .closed = note_closed
};

static void start(enum tls_link_kind kind)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(443), .sin_addr.s_addr = htonl(0xc0000263)
    };

    begin_servers(0, kind);
    tls_profiles[0].pairs = &pair; /* the certificate of one.tests */
    tls_profiles[0].pair_n = 1;
    tls_profiles[1].role = TLS_CLIENT;
    tls_profiles[1].verify = TLS_VERIFY_ON;
    tls_profiles[1].trusted = 0;
    profile = (struct fb_tls_profile) { .profile = &tls_profiles[1] };
    ck_assert_ptr_null(target_parse("192.0.2.99:443", false, &target));
    server = sim_server(test.fixture->sim, (const struct sockaddr *)&address, sizeof(address));
    client_socket = scripted_connect(test.fixture);
    fixture_run(test.fixture);
    ck_assert_uint_eq(openings(), 1);
}

static void finish(void)
{
    log_so_far();
    end_tls();
}

static fb_connect_options with_name(const char *name)
{
    return (fb_connect_options) { .size = sizeof(fb_connect_options),
        .tls = &profile,
        .timeout = CONNECT_MS,
        .tls_name = { (const uint8_t *)name, strlen(name) } };
}

static fb_connect_options with(void)
{
    return with_name("one.tests");
}

static fb_connect_options with_header(void)
{
    fb_connect_options options = with();

    options.tls_before = (fb_bytes) { (const uint8_t *)"PROXY\r\n", 7 };
    return options;
}

static fb_connect_options with_profile(const fb_tls_profile *other)
{
    fb_connect_options options = with();

    options.tls = other;
    return options;
}

static fb_connect_options with_limit(void)
{
    fb_connect_options options = with();

    options.limit = options.queue = 1;
    return options;
}

/* Connects on behalf of the client. */
static void ask(struct told *told, fb_connect_options options)
{
    *told = (struct told) { 0 };
    options.owner = test.servers[0]->record.conn;
    told->conn = backend_connect_with(
        test.fixture->stream, NULL, &target, false, &connect_ops, told, &options);
    ck_assert_ptr_nonnull(told->conn);
    fixture_settle(test.fixture);
}

/* Takes the connected socket at the server, in the handshake. */
static struct tls_client *accept_connection(void)
{
    struct sim_socket *socket;

    fixture_run(test.fixture);
    socket = sim_server_take(server);
    ck_assert_ptr_nonnull(socket);
    return tls_server_create(socket);
}

/* The server's part of the whole handshake. */
static void shake(struct tls_client *peer)
{
    for (unsigned i = 0; i < 3; i++) {
        fixture_run(test.fixture);
        tls_client_look(peer);
        tls_client_say(peer, SIZE_MAX);
    }
    fixture_run(test.fixture);
}

static struct tls_client *open_connection(struct told *told, fb_connect_options options)
{
    struct tls_client *peer;

    ask(told, options);
    peer = accept_connection();
    shake(peer);
    ck_assert_int_eq(peer->step, TLS_DONE);
    ck_assert_uint_eq(told->openings, 1);
    return peer;
}

static void expect_failure(const struct told *told, fb_reason reason, const char *line)
{
    const char *log = log_so_far();

    ck_assert_uint_eq(told->openings, 0);
    ck_assert_uint_eq(told->closings, 1);
    ck_assert_int_eq(told->reason, reason);
    ck_assert_msg(strstr(log, line) != NULL, "logged: %s", log);
}

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

/* Nothing of the output leaves in plain. */
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
    finish();
}
END_TEST

START_TEST(a_name_has_a_limit)
{
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
    ck_assert_ptr_nonnull(backend_connect_with(test.fixture->stream, NULL, &target, false,
        &(const fb_ops) { .size = sizeof(fb_ops) }, NULL, &options));
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

/* ---- The pool ---- */

static void keep_connection(struct told *told)
{
    keepalive_keep(told->conn, 10000);
    fixture_settle(test.fixture);
    fixture_run(test.fixture);
    ck_assert_uint_eq(told->closings, 1);
    ck_assert_int_eq(told->reason, FB_FINISHED);
}

static bool is_reused(const struct told *told)
{
    return told->conn->session->reused;
}

static void forget(const struct told *told)
{
    fb_abort(told->conn);
    fixture_settle(test.fixture);
}

START_TEST(a_kept_connection_is_for_its_name_alone)
{
    static struct fb_tls_profile other;
    struct told told, next;
    struct tls_client *peer;

    start(TLS_LINK_LOCAL);
    other = profile;
    peer = open_connection(&told, with());
    keep_connection(&told);
    ask(&next, with_name("two.tests"));
    ck_assert(!is_reused(&next));
    forget(&next);
    ask(&next, with_profile(NULL));
    ck_assert(!is_reused(&next));
    forget(&next);
    ask(&next, with_profile(&other));
    ck_assert(!is_reused(&next));
    forget(&next);
    ask(&next, with_header());
    ck_assert(!is_reused(&next));
    forget(&next);
    ask(&next, with_name("one.tests:443"));
    ck_assert(is_reused(&next));
    fixture_run(test.fixture);
    ck_assert_uint_eq(next.openings, 1);
    fb_write(next.conn, "again", 5);
    fixture_settle(test.fixture);
    ck_assert_str_eq(sealing_sent(&peer->peer), "again");
    tls_client_destroy(&peer);
    finish();
}
END_TEST

/* A record without data, as a ticket is, ends nothing; data, and an end, do. */
START_TEST(an_idle_connection_stays)
{
    struct told told, next;
    struct tls_client *peer;

    start(TLS_LINK_LOCAL);
    peer = open_connection(&told, with());
    keep_connection(&told);
    if (_i == 0)
        sealing_add_update(&peer->peer, false);
    else if (_i == 1)
        sealing_add_text(&peer->peer, "unasked");
    else
        sealing_add_close(&peer->peer);
    sealing_say(&peer->peer);
    fixture_run(test.fixture);
    ask(&next, with());
    ck_assert(is_reused(&next) == (_i == 0));
    fixture_run(test.fixture);
    ck_assert_uint_eq(next.openings, _i == 0);
    tls_client_destroy(&peer);
    finish();
}
END_TEST

/* Who waits for a place gets a connection that is secured already, or shakes hands. */
START_TEST(a_waiting_connection_is_secured)
{
    struct told told, next;
    struct tls_client *peer, *second = NULL;

    start(TLS_LINK_LOCAL);
    peer = open_connection(&told, with_limit());
    ask(&next, with_limit());
    fixture_run(test.fixture);
    ck_assert_uint_eq(next.openings, 0);
    if (_i == 0) {
        keep_connection(&told);
    } else {
        forget(&told);
        second = accept_connection();
        ck_assert_uint_eq(next.openings, 0);
        shake(second);
    }
    fixture_run(test.fixture);
    ck_assert_uint_eq(next.openings, 1);
    ck_assert(is_reused(&next) == (_i == 0));
    tls_client_destroy(&peer);
    if (second != NULL)
        tls_client_destroy(&second);
    finish();
}
END_TEST

/* Each request for memory fails once: the connection, or the session, ends in order. */
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
    tcase_add_test(tcase, a_kept_connection_is_for_its_name_alone);
    tcase_add_loop_test(tcase, an_idle_connection_stays, 0, 3);
    tcase_add_loop_test(tcase, a_waiting_connection_is_secured, 0, 2);
    tcase_add_loop_test(tcase, memory_runs_out, 0, 8);
}

TEST_MAIN("connect_tls", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients whose ClientHello gives them to the second server of an address, before the handshake. */
#include "features/handshakes.h"
#include "features/hello.h"

#include "features/server_name/server_name.h"

#define BYTES(text) text, sizeof(text) - 1

static struct server_names choices;
static struct named_server choice_list[2];
static unsigned late;

static unsigned note_late(struct fb_conn *conn, const void *arg)
{
    ck_assert_ptr_eq(session_server_of(conn), arg);
    late++;
    return 0;
}

/* Begins a test of two servers at the first one's address; the second is one.tests. */
static void begin_choice(enum tls_link_kind kind)
{
    begin_servers(3, kind);
    late = 0;
    choices = (struct server_names) { .map.exact.kind = MAP_EXACT,
        .map.end.kind = MAP_END,
        .map.begin.kind = MAP_BEGIN,
        .servers = choice_list,
        .n = 2 };
    for (unsigned i = 0; i < 2; i++) {
        choice_list[i].binding = &test.servers[i]->binding;
        add_before(
            i, PHASE_ACCESS, i == 0 ? note_access : refuse, NULL); /* the second's is not run */
        add_handshake(i);
        add_before(i, PHASE_TIMES, note_late, &test.servers[i]->server);
    }
    ck_assert_int_eq(map_table_add(&choices.map.exact, BYTES("one.tests"), 1), 1);
    ck_assert_int_eq(map_table_finish(&choices.map.exact, test.arena), 0);
    test.servers[0]->binding.names = &choices;
}

static struct sim_socket *connect_socket(void)
{
    struct sim_socket *socket = scripted_connect(test.fixture);

    fixture_run(test.fixture);
    return socket;
}

static void say(struct sim_socket *socket, const void *p, size_t n)
{
    sim_say(socket, p, n);
    fixture_run(test.fixture);
}

/* Ends a handshake with the random bytes of tests. */
static void say_finished(struct sim_socket *socket)
{
    static const uint8_t finished[38] = { 0x16, 3, 3, 0, 33, 3 };

    say(socket, finished, sizeof(finished));
}

static void expect_server(unsigned i)
{
    ck_assert_uint_eq(test.servers[i]->record.openings, 1);
    ck_assert_uint_eq(test.servers[1 - i]->record.openings, 0);
    ck_assert_uint_eq(accesses, 1);
    ck_assert_uint_eq(late, 1);
}

START_TEST(a_name_chooses_in_any_pieces)
{
    struct hello message = hello_message(BYTES(HELLO_PROTOCOLS HELLO_NAME));
    struct hello hello = hello_records(&message, HELLO_MOST);

    for (size_t n = 1; n < hello.n; n++) {
        struct sim_socket *socket;

        begin_choice(TLS_LINK_LOCAL);
        tls_profiles[1].alpn = (const uint8_t *)"\2h2";
        tls_profiles[1].alpn_n = 3;
        socket = connect_socket();
        say(socket, hello.p, n);
        ck_assert_uint_eq(socket->sent_n, 0);
        say(socket, hello.p + n, hello.n - n);
        ck_assert_uint_gt(socket->sent_n, 2);
        ck_assert_ptr_nonnull(memmem(sim_sent(socket), socket->sent_n, "\2h2", 3)); /* its ALPN */
        say_finished(socket);
        expect_server(1);
        end_tls();
    }
}
END_TEST

START_TEST(other_names_are_the_first_server_s)
{
    struct hello others[] = { hello_of("", 0), hello_of(BYTES(HELLO_OTHER_NAME)) };
    struct sim_socket *socket;

    begin_choice(TLS_LINK_LOCAL);
    socket = connect_socket();
    say(socket, others[_i].p, others[_i].n);
    say_finished(socket);
    expect_server(0);
    end_tls();
}
END_TEST

/* `_i` is the rejecting server; the other server shakes hands. */
START_TEST(the_chosen_server_may_reject)
{
    struct hello hello = hello_of(BYTES(HELLO_NAME));
    struct sim_socket *socket;

    begin_choice(TLS_LINK_LOCAL);
    tls_profiles[_i].reject = true;
    socket = connect_socket();
    say(socket, hello.p, hello.n);
    if (_i == 1) {
        ck_assert_uint_eq(socket->sent_n, 7);
        ck_assert_mem_eq(sim_sent(socket), "\x15\3\1\0\2\2\x70", 7);
        ck_assert_ptr_nonnull(strstr(log_so_far(), "handshake rejected while SSL handshaking"));
        ck_assert_uint_eq(test.servers[1]->record.openings, 0);
    } else {
        say_finished(socket);
        expect_server(1);
    }
    end_tls();
}
END_TEST

/* `_i` is the server with challenges; the second one is chosen. */
START_TEST(the_chosen_server_answers_challenges)
{
    struct hello hello = hello_of(BYTES("\0\x10\0\x0d\0\x0b" SSL_CHALLENGE_ALPN HELLO_NAME));
    struct sim_socket *socket;

    begin_choice(TLS_LINK_HELD);
    test.servers[_i]->server.challenges = &tls_profiles[0];
    socket = connect_socket();
    say(socket, hello.p, hello.n);
    ck_assert_uint_eq(tls_held_n(), 1);
    ck_assert_uint_eq(tls_held_profile(), _i == 0);
    end_tls();
}
END_TEST

/* The first server's time until the name is known, then the second's, from the begin on. */
START_TEST(the_time_is_the_chosen_server_s)
{
    struct hello hello = hello_of(BYTES(HELLO_NAME));
    struct sim_socket *socket;

    begin_choice(TLS_LINK_LOCAL);
    tls_profiles[1].handshake_timeout = _i == 0 ? 500 : 5000;
    socket = connect_socket();
    fixture_pass(test.fixture, 1000);
    say(socket, hello.p, hello.n);
    fixture_pass(test.fixture, _i == 0 ? 10 : 3990);
    ck_assert(socket->closed == (_i == 0));
    fixture_pass(test.fixture, 10);
    ck_assert(socket->closed);
    ck_assert_ptr_nonnull(strstr(log_so_far(), "client timed out"));
    end_tls();
}
END_TEST

START_TEST(a_name_that_never_comes_is_not_awaited)
{
    struct hello hello = hello_of(BYTES(HELLO_NAME));
    struct sim_socket *socket;

    begin_choice(TLS_LINK_LOCAL);
    socket = connect_socket();
    say(socket, hello.p, hello.n - 1);
    fixture_pass(test.fixture, TIMEOUT - 1);
    ck_assert(!socket->closed);
    fixture_pass(test.fixture, 1);
    ck_assert(socket->closed);
    ck_assert_ptr_nonnull(strstr(log_so_far(), "client timed out"));
    end_tls();
}
END_TEST

/* A slot for a connection to a server is reserved for the chosen server alone, and given back. */
START_TEST(slots_follow_the_client)
{
    struct hello hello = hello_of(BYTES(HELLO_NAME));
    struct sim_socket *socket;

    begin_choice(TLS_LINK_LOCAL);
    test.servers[_i]->server.connects = true;
    socket = connect_socket();
    ck_assert_uint_eq(test.fixture->net->reserved, _i == 0);
    say(socket, hello.p, hello.n);
    ck_assert_uint_eq(test.fixture->net->reserved, _i == 1);
    say_finished(socket);
    expect_server(1);
    end_tls();
}
END_TEST

/* The first record of a hello is no longer parsed: the server stays. */
START_TEST(a_second_hello_chooses_nothing)
{
    struct hello first = hello_of(BYTES(HELLO_OTHER_NAME)), second = hello_of(BYTES(HELLO_NAME));
    struct sim_socket *socket;

    begin_choice(TLS_LINK_HELD);
    socket = connect_socket();
    say(socket, first.p, first.n);
    ck_assert_uint_eq(tls_held_n(), 1);
    say(socket, second.p, second.n);
    tls_reply_held();
    fixture_run(test.fixture);
    ck_assert_uint_eq(tls_held_n(), 1);
    ck_assert_uint_eq(late, 0);
    tls_reply_held(); /* unexpected by this engine */
    fixture_run(test.fixture);
    ck_assert_ptr_nonnull(strstr(log_so_far(), "an unexpected message" CONTEXT));
    end_tls();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_name_chooses_in_any_pieces);
    tcase_add_loop_test(tcase, other_names_are_the_first_server_s, 0, 2);
    tcase_add_loop_test(tcase, the_chosen_server_may_reject, 0, 2);
    tcase_add_loop_test(tcase, the_chosen_server_answers_challenges, 0, 2);
    tcase_add_loop_test(tcase, the_time_is_the_chosen_server_s, 0, 2);
    tcase_add_test(tcase, a_name_that_never_comes_is_not_awaited);
    tcase_add_loop_test(tcase, slots_follow_the_client, 0, 2);
    tcase_add_test(tcase, a_second_hello_chooses_nothing);
}

TEST_MAIN("ssl_choose", add_tests)

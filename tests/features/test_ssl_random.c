/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of randomly configured servers with TLS, random acts of clients, protocols, kernel and
 * engine, now and then without memory: all that is sent can be opened, and nothing is left. The
 * number of a failing test is its seed. */
#include "features/handshakes.h"
#include "session/idle.h"
#include "session/random_ways.h"
#include "tls/link_private.h"

#include <errno.h>

#define SEEDS 60
#define ROUNDS 200

static int open_somehow(fb_conn *conn, void *state_of)
{
    if (any_below(8) == 0)
        fb_write(conn, sealing_pattern(), any_below(100000));
    return act_on_opened(conn, state_of);
}

static size_t take_some(fb_conn *conn, void *state_of, fb_bytes in)
{
    (void)state_of;
    fb_write(conn, in.p, in.n);
    if (any_below(16) == 0)
        fb_write(conn, sealing_pattern(), any_below(200000));
    if (any_below(8) == 0)
        fb_close(conn);
    if (any_below(8) == 0)
        fb_shutdown(conn);
    return any_below(4) == 0 ? any_below((uint32_t)in.n + 1) : in.n;
}

static void configure_server(unsigned i)
{
    test.servers[i]->script.opened = open_somehow;
    test.servers[i]->script.data = take_some;
    tls_profiles[i].verify = any_below(8) == 0 ? TLS_VERIFY_ON : TLS_VERIFY_OFF;
    tls_profiles[i].reject = any_below(16) == 0;
    if (any_below(6) == 0) { /* of all clients */
        tls_profiles[0].alpn = (const uint8_t *)SSL_CHALLENGE_ALPN;
        tls_profiles[0].alpn_n = sizeof(SSL_CHALLENGE_ALPN) - 1;
        test.servers[i]->server.challenges = &tls_profiles[0];
    }
    configure_begin(i);
    if (test.servers[i]->binding.ssl)
        add_handshake(i);
    configure_end(i);
}

static void trouble_somehow(void)
{
    const struct sim_trouble trouble = {
        .partial_send = any_below(600),
        .partial_recv = any_below(600),
        .again = any_below(200),
        .spurious = any_below(200),
        .late = any_below(200),
        .reset = any_below(3),
    };

    if (any_below(2) == 0)
        sim_trouble(test.fixture->sim, state, &trouble);
}

/* Adds and says records of the client's. */
static void speak(struct tls_client *client)
{
    switch (any_below(6)) {
    case 0:
        sealing_add_data(&client->peer, sealing_pattern(), any_below(70000), 1 + any_below(16384));
        break;
    case 1:
        sealing_add_update(&client->peer, any_below(2) == 0);
        break;
    default:
        sealing_add_text(&client->peer, "hello");
    }
    sealing_say_pieces(&client->peer, 1 + any_below(20000));
}

/* Whether the client says more. */
static bool act(struct tls_client *client)
{
    struct sim_socket *socket = client->socket;

    tls_client_look(client);
    switch (any_below(16)) {
    case 0:
        if (client->step == TLS_DONE && client->waiting.n == 0) {
            sealing_add_close(&client->peer);
            sealing_say(&client->peer);
        }
        sim_end(socket);
        return false;
    case 1:
        sim_reset(socket, ECONNRESET);
        return false;
    case 2:
        sim_set_room(socket, any_below(20000));
        break;
    case 3:
        sim_set_room(socket, SIZE_MAX);
        break;
    case 4:
        sim_stall(socket);
        break;
    case 5:
        tls_client_say(client, any_below(40));
        break;
    default:
        tls_client_say(client, SIZE_MAX);
        if (client->step == TLS_DONE && any_below(3) == 0)
            speak(client);
    }
    return true;
}

/* Lets the engine reply, or be lost. */
static void run_engine(enum tls_link_kind kind)
{
    if (kind == TLS_LINK_HELD)
        while (tls_held_n() > 0 && (any_below(3) > 0 || tls_held_n() > 10))
            tls_reply_held();
    else if (any_below(100) == 0)
        tls_link_break(test.fixture->stream->tls_link);
}

static void play(struct tls_client *clients[CLIENTS], enum tls_link_kind kind)
{
    struct fixture *fixture = test.fixture;
    bool speaks[CLIENTS] = { false };
    bool is_proxied = test.servers[0]->binding.ops == &proxy_protocol_ops;

    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned at = any_below(CLIENTS);

        if (clients[at] != NULL && clients[at]->socket->closed) {
            tls_client_look(clients[at]);
            tls_client_destroy(&clients[at]);
        }
        if (clients[at] == NULL) {
            clients[at] = tls_client_create(scripted_connect(fixture));
            speaks[at] = true;
            if (is_proxied == (any_below(20) > 0))
                sim_says(clients[at]->socket, LINE);
        } else if (speaks[at]) {
            speaks[at] = act(clients[at]);
        }
        if (any_below(8) == 0)
            fixture_pass(fixture, any_below(1000));
        if (any_below(30) == 0)
            fixture->memory.until_failure = any_below(10);
        run_engine(kind);
        fixture_run(fixture);
        if (any_below(3) == 0)
            fixture->memory.until_failure = UINT_MAX;
        if (i == ROUNDS / 2 && any_below(4) == 0)
            session_drain(fixture->stream, any_below(2) * 5000);
        fixture_logged(fixture);
    }
    fixture->memory.until_failure = UINT_MAX;
}

START_TEST(nothing_is_left)
{
    struct tls_client *clients[CLIENTS] = { NULL };
    enum tls_link_kind kind;

    state = (uint64_t)_i;
    kind = any_below(2) == 0 ? TLS_LINK_LOCAL : TLS_LINK_HELD;
    begin_servers(1 + any_below(3), kind);
    if (any_below(3) == 0)
        pass_clients(open_somehow);
    if (any_below(3) == 0)
        test.servers[any_below(2)]->binding.ops = &proxy_protocol_ops;
    for (unsigned i = 0; i < 2; i++)
        configure_server(i);
    trouble_somehow();
    play(clients, kind);
    sim_trouble(test.fixture->sim, 0, NULL);
    tls_end(test.fixture);
    for (unsigned i = 0; i < CLIENTS; i++)
        if (clients[i] != NULL) {
            tls_client_look(clients[i]);
            tls_client_destroy(&clients[i]);
        }
    end();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, nothing_is_left, 0, test_trials(SEEDS));
}

TEST_MAIN("ssl_random", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole worker on a troubled kernel, whose clients come with TLS: every undisturbed client is
 * served to the end, with close_notify behind, and nothing is left of the rest. The number of a
 * failing test is its seed. */
#include "features/ssl/handshake.h"
#include "features/tls_client.h"
#include "support/fixture_worker.h"

#define CLIENTS 16
#define SLOTS 6
#define SAID_MAX 60000
#define SEEDS 40
#define TURNS_MAX 200000

struct client {
    struct tls_client *tls;
    size_t said_n, to_say;
    bool ended;
};

static const struct sim_trouble trouble = {
    .partial_send = 200,
    .partial_recv = 200,
    .again = 200,
    .spurious = 200,
    .late = 200,
    .reset = 5,
    .aborted = 50,
};

static struct phase_handler handshake = { .phase = PHASE_SSL, .run = ssl_handshake_begin };

static struct fixture *start_worker(enum fixture_events events)
{
    struct fixture_worker_options options = { .events = events, .connections = SLOTS };
    struct fixture *fixture = fixture_start_worker(&options);

    tls_begin(fixture, TLS_LINK_LOCAL);
    tls_add_server(&fixture->server, 0);
    tls_profiles[0].handshake_timeout = UINT64_MAX / 2; /* a wait takes the time to a deadline */
    fixture->server.server.before = &handshake;
    return fixture;
}

static void connect_tls(struct fixture *fixture, struct client *client)
{
    struct sim_socket *socket = fixture_connect_client(fixture);

    socket->lends = sim_random(fixture->sim, 4) == 0;
    socket->tells_eof = sim_random(fixture->sim, 2) == 0;
    client->tls = tls_client_create(socket);
    client->to_say = 1 + sim_random(fixture->sim, SAID_MAX);
}

static void say_records(struct fixture *fixture, struct client *client)
{
    struct sealing *peer = &client->tls->peer;
    size_t left = client->to_say - client->said_n, n = 1 + sim_random(fixture->sim, 20000);

    n = n < left ? n : left;
    if (sim_random(fixture->sim, 8) == 0)
        sealing_add_update(peer, sim_random(fixture->sim, 2) == 0);
    sealing_add_data(
        peer, sealing_pattern() + client->said_n, n, 1 + sim_random(fixture->sim, 16384));
    client->said_n += n;
    client->ended = client->said_n == client->to_say;
    if (client->ended)
        sealing_add_close(peer);
    sealing_say_pieces(peer, 1 + sim_random(fixture->sim, 20000));
    if (client->ended)
        sim_end(peer->socket);
}

static void say_some(struct fixture *fixture, struct client *client)
{
    if (client->tls->socket->broke || client->ended)
        return;
    tls_client_look(client->tls);
    if (client->tls->waiting.n > 0)
        tls_client_say(client->tls, 1 + sim_random(fixture->sim, 100));
    else if (client->tls->step == TLS_DONE)
        say_records(fixture, client);
}

static void check_client(struct client *client)
{
    struct tls_client *tls = client->tls;

    tls_client_look(tls);
    ck_assert(tls->socket->closed);
    ck_assert_uint_le(tls->peer.plain.n, client->said_n);
    if (tls->peer.plain.n > 0)
        ck_assert_mem_eq(tls->peer.plain.p, sealing_pattern(), tls->peer.plain.n);
    if (!tls->socket->broke) {
        ck_assert_uint_eq(tls->peer.plain.n, client->to_say);
        ck_assert(tls->peer.closed);
    }
}

static bool is_any_open(const struct client *clients)
{
    for (int i = 0; i < CLIENTS; i++)
        if (!clients[i].tls->socket->closed)
            return true;
    return false;
}

START_TEST(who_is_left_alone_is_served)
{
    struct fixture *fixture = start_worker(_i % FIXTURE_EVENTS);
    struct client clients[CLIENTS] = { { .said_n = 0 } };
    unsigned broke = 0;

    sim_trouble(fixture->sim, (uint64_t)_i, &trouble);
    for (int i = 0; i < CLIENTS; i++)
        connect_tls(fixture, &clients[i]);
    for (int turns = 0; is_any_open(clients); turns++) {
        test_require(turns < TURNS_MAX);
        say_some(fixture, &clients[sim_random(fixture->sim, CLIENTS)]);
        fixture_turn(fixture);
    }
    for (int i = 0; i < CLIENTS; i++) {
        check_client(&clients[i]);
        broke += clients[i].tls->socket->broke;
        tls_client_destroy(&clients[i].tls);
    }
    ck_assert_uint_lt(broke, CLIENTS);
    tls_end(fixture);
    fixture_logged(fixture); /* lines about broken connections and lack of slots */
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, who_is_left_alone_is_served, 0, test_trials(SEEDS));
}

TEST_MAIN("trouble_tls", add_tests)

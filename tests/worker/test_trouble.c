/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole worker on a troubled kernel: every undisturbed client is served to the end, and nothing
 * is left of the rest. The number of a failing test is its seed. */
#include "support/fixture_worker.h"

#define CLIENTS 24
#define SLOTS 6
#define SAID_MAX 9000
#define SEEDS 30
#define TURNS_MAX 200000

struct client {
    struct sim_socket *socket;
    uint8_t said[SAID_MAX];
    size_t said_n, to_say;
};

static const struct sim_trouble trouble = {
    .partial_send = 200,
    .partial_recv = 200,
    .again = 200,
    .spurious = 200,
    .late = 200,
    .reset = 10,
    .aborted = 50,
};

static void connect_client(struct fixture *fixture, struct client *client)
{
    client->socket = fixture_connect_client(fixture);
    client->socket->lends = sim_random(fixture->sim, 4) == 0;
    client->socket->tells_eof = sim_random(fixture->sim, 2) == 0;
    client->to_say = 1 + sim_random(fixture->sim, SAID_MAX);
}

static void say_some(struct fixture *fixture, struct client *client)
{
    size_t left = client->to_say - client->said_n, n = 1 + sim_random(fixture->sim, 2000);

    if (client->socket->broke || left == 0)
        return;
    n = n < left ? n : left;
    for (size_t i = 0; i < n; i++)
        client->said[client->said_n + i] = (uint8_t)sim_random(fixture->sim, 256);
    sim_say(client->socket, client->said + client->said_n, n);
    client->said_n += n;
    if (client->said_n == client->to_say)
        sim_end(client->socket);
}

static void check_client(const struct client *client)
{
    const struct sim_socket *socket = client->socket;

    ck_assert(socket->closed);
    ck_assert_uint_le(socket->sent_n, client->said_n);
    if (socket->sent_n > 0)
        ck_assert_mem_eq(socket->sent, client->said, socket->sent_n);
    if (!socket->broke)
        ck_assert_uint_eq(socket->sent_n, client->to_say);
}

static unsigned count_open(const struct client *clients)
{
    unsigned n = 0;

    for (int i = 0; i < CLIENTS; i++)
        n += !clients[i].socket->closed;
    return n;
}

static uint64_t serve_clients(uint64_t seed, enum fixture_events events, unsigned *broke)
{
    struct fixture_worker_options options = { .events = events, .connections = SLOTS };
    struct fixture *fixture = fixture_start_worker(&options);
    struct client *clients = calloc(CLIENTS, sizeof(*clients));
    uint64_t digest;

    ck_assert_ptr_nonnull(clients);
    sim_trouble(fixture->sim, seed, &trouble);
    for (int i = 0; i < CLIENTS; i++)
        connect_client(fixture, &clients[i]);
    for (int turns = 0; count_open(clients) > 0; turns++) {
        test_require(turns < TURNS_MAX);
        say_some(fixture, &clients[sim_random(fixture->sim, CLIENTS)]);
        fixture_turn(fixture);
    }
    for (int i = 0; i < CLIENTS; i++) {
        check_client(&clients[i]);
        *broke += clients[i].socket->broke;
    }
    digest = fixture->sim->digest;
    fixture_logged(fixture); /* lines about broken connections and lack of slots */
    fixture_stop(fixture);
    free(clients);
    return digest;
}

START_TEST(who_is_left_alone_is_served)
{
    unsigned broke = 0;

    serve_clients((uint64_t)_i, _i % FIXTURE_EVENTS, &broke);
    ck_assert_uint_lt(broke, CLIENTS);
}
END_TEST

START_TEST(the_same_seed_is_the_same_run)
{
    unsigned broke = 0;

    for (uint64_t seed = 100; seed < 110; seed++) {
        uint64_t digest = serve_clients(seed, _i, &broke);

        ck_assert_uint_eq(serve_clients(seed, _i, &broke), digest);
        ck_assert_uint_ne(serve_clients(seed + 10, _i, &broke), digest);
    }
    ck_assert_uint_gt(broke, 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, who_is_left_alone_is_served, 0, SEEDS);
    tcase_add_loop_test(tcase, the_same_seed_is_the_same_run, 0, FIXTURE_EVENTS);
}

TEST_MAIN("trouble", add_tests)

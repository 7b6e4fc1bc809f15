/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers and owners with random actions at any time: all sent bytes come back whole and in order, or
 * the connection has ended. The number of a failing test is its seed. */
#include "support/random_owner.h"

#include <errno.h>

#define PEERS 8
#define STEPS 600
#define SEEDS 60
#define PIECE_MAX 30000

struct peer {
    struct owner *live;
    uint8_t *said;
    size_t said_n;
    bool ended; /* the peer says no more */
};

static void open_peer(struct fixture *fixture, struct peer *peer)
{
    peer->live = create_echoing(fixture);
    peer->said_n = 0;
    peer->ended = false;
}

/* The connection has ended, perhaps before the opening. */
static void forget_connection(struct peer *peer)
{
    if (peer->live->openings > 0)
        owner_free(&peer->live);
    else
        free(peer->live);
}

static void say_some(struct peer *peer)
{
    size_t n = 1 + any_below(one_in(4) ? PIECE_MAX : 100);

    peer->said = realloc(peer->said, peer->said_n + n);
    test_require(peer->said != NULL);
    for (size_t i = 0; i < n; i++)
        peer->said[peer->said_n + i] = (uint8_t)any_below(256);
    sim_say(peer->live->socket, peer->said + peer->said_n, n);
    peer->said_n += n;
}

static void check_peer(const struct peer *peer)
{
    const struct sim_socket *socket = peer->live->socket;

    test_require(socket->sent_n <= peer->said_n);
    if (socket->sent_n > 0)
        test_require(memcmp(socket->sent, peer->said, socket->sent_n) == 0);
}

static void let_peer_act(struct peer *peer)
{
    switch (any_below(8)) {
    case 0:
        sim_stall(peer->live->socket);
        break;
    case 1:
        peer->ended = one_in(20);
        if (peer->ended)
            sim_break(peer->live->socket, ECONNRESET);
        break;
    case 2:
        peer->ended = one_in(10);
        if (peer->ended)
            sim_end(peer->live->socket);
        break;
    default:
        say_some(peer);
    }
}

/* Everything that was said is echoed if the connection is left alone now. */
static void finish_peer(struct fixture *fixture, struct peer *peer)
{
    struct owner *owner = peer->live;
    bool whole = owner->conn != NULL && conn_is_active(owner->conn) && !peer->ended;

    if (whole)
        sim_end(owner->socket);
    finish_owner(fixture, owner);
    check_peer(peer);
    if (whole) {
        ck_assert_int_eq(owner->reason, FB_FINISHED);
        ck_assert_uint_eq(owner->socket->sent_n, peer->said_n);
    }
}

START_TEST(whatever_happens)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, PEERS);
    struct peer *peers = calloc(PEERS, sizeof(*peers));

    ck_assert_ptr_nonnull(peers);
    state = (uint64_t)_i;
    for (int i = 0; i < PEERS; i++)
        open_peer(fixture, &peers[i]);
    for (int step = 0; step < STEPS; step++) {
        struct peer *peer = &peers[any_below(PEERS)];

        if (peer->live->conn != NULL && !act_on_owner(fixture, peer->live) && !peer->ended)
            let_peer_act(peer);
        if (one_in(3))
            fixture_turn(fixture);
        check_peer(peer);
        if (peer->live->socket->closed) {
            forget_connection(peer);
            open_peer(fixture, peer);
        }
    }
    for (int i = 0; i < PEERS; i++)
        peers[i].live->socket->send_most = SIZE_MAX;
    fixture_run(fixture);
    for (int i = 0; i < PEERS; i++) {
        finish_peer(fixture, &peers[i]);
        forget_connection(&peers[i]);
        free(peers[i].said);
    }
    free(peers);
    fixture_logged(fixture); /* lines about connections that were reset */
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, whatever_happens, 0, SEEDS);
}

TEST_MAIN("conn_random", add_tests)

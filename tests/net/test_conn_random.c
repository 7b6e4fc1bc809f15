/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers and owners with random actions at any time: all sent bytes come back whole and in order, or
 * the connection has ended. The number of a failing test is its seed. */
#include "support/owner.h"

#include <errno.h>
#include <string.h>

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

static uint64_t state;

/* splitmix64 */
static uint32_t any_below(uint32_t below)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32) % below;
}

/* Echoes a part, copied or borrowed, in one write or many. */
static size_t echo_some(struct owner *owner, fb_bytes in)
{
    size_t used = any_below(4) == 0 ? any_below((uint32_t)in.n + 1) : in.n;
    size_t step = 1 + any_below((uint32_t)used + 1);
    uint8_t copy[512];

    for (size_t at = 0; at < used; at += step) {
        size_t n = step < used - at ? step : used - at;

        if (n < sizeof(copy) && any_below(2) == 0)
            conn_write(owner->conn, memcpy(copy, in.p + at, n), n);
        else
            conn_write(owner->conn, in.p + at, n);
    }
    if (any_below(8) == 0)
        conn_stop(owner->conn);
    if (any_below(8) == 0)
        conn_resume(owner->conn);
    return used;
}

static void echo_rest(struct owner *owner, fb_bytes rest)
{
    conn_write(owner->conn, rest.p, rest.n);
    conn_close(owner->conn);
}

static void open_peer(struct fixture *fixture, struct peer *peer)
{
    static const struct owner echoing = { .data = echo_some, .eof = echo_rest };

    peer->live = owner_create(fixture, &echoing);
    peer->live->socket->lends = any_below(4) == 0;
    peer->live->socket->tells_eof = any_below(2) == 0;
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
    size_t n = 1 + any_below(any_below(4) == 0 ? PIECE_MAX : 100);

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

static void do_something(struct fixture *fixture, struct peer *peer)
{
    struct sim_socket *socket = peer->live->socket;

    switch (any_below(16)) {
    case 0:
        sim_set_room(socket, 0);
        break;
    case 1:
        sim_set_room(socket, any_below(50000));
        break;
    case 2:
        sim_set_room(socket, SIZE_MAX);
        break;
    case 3:
        socket->send_most = 1 + any_below(any_below(2) == 0 ? 20 : 100000);
        break;
    case 4:
        conn_stop(peer->live->conn);
        break;
    case 5:
        conn_resume(peer->live->conn);
        break;
    case 6:
        sim_pass(fixture->sim, any_below(100));
        break;
    case 7:
        if (!peer->ended)
            sim_stall(socket);
        break;
    case 8:
        if (any_below(20) == 0)
            conn_fail(peer->live->conn, FB_ABORTED);
        else if (any_below(20) == 0)
            conn_close(peer->live->conn);
        fixture_settle(fixture);
        break;
    case 9:
        if (any_below(20) == 0 && !peer->ended) {
            sim_break(socket, ECONNRESET);
            peer->ended = true;
        }
        break;
    case 10:
        if (any_below(10) == 0 && !peer->ended) {
            sim_end(socket);
            peer->ended = true;
        }
        break;
    default:
        if (!peer->ended)
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
    sim_set_room(owner->socket, SIZE_MAX);
    for (int i = 0; i < 1000 && owner->conn != NULL && conn_is_active(owner->conn); i++) {
        conn_resume(owner->conn);
        fixture_turn(fixture);
    }
    fixture_run(fixture);
    fixture_pass(fixture, 10000); /* the closed ones have lingered long enough */
    check_peer(peer);
    ck_assert_uint_eq(owner->closings, 1);
    ck_assert(owner->socket->closed);
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

        if (peer->live->conn != NULL)
            do_something(fixture, peer);
        if (any_below(3) == 0)
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

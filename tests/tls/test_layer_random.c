/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers with TLS, owners and a kernel with random actions at any time: all data come back whole and
 * in order, or the connection has ended. The number of a failing test is its seed. */
#include "support/random_owner.h"
#include "tls/sealing.h"

#include <errno.h>

#define PEERS 4
#define STEPS 400
#define SEEDS 120
#define PIPE_SEEDS 200
#define PIPE_STEPS 80
#define PIECE_MAX 40000
/* The cost of a record without data, and what a peer may owe: tls/layer_input.c. */
#define RECORD_DEBT 32768
#define DEBT_MOST (1024 * 1024)

struct peer {
    struct owner *live;
    struct sealing sealing;
    uint8_t *said; /* data */
    size_t said_n;
    size_t debt;
    bool ended; /* the peer says no more */
    bool wrong; /* ... as the last was no record */
};

static void add_data(struct peer *peer)
{
    size_t n = 1 + any_below(one_in(4) ? PIECE_MAX : 100);
    size_t record = 1 + any_below(one_in(2) ? TLS_PLAIN_MOST : 50);

    if (n / record > 1000)
        record = n / 1000;
    peer->said = realloc(peer->said, peer->said_n + n);
    test_require(peer->said != NULL);
    for (size_t i = 0; i < n; i++)
        peer->said[peer->said_n + i] = (uint8_t)any_below(256);
    sealing_add_data(&peer->sealing, peer->said + peer->said_n, n, record);
    peer->said_n += n;
    peer->debt -= n < peer->debt ? n : peer->debt;
}

static void add_without_data(struct peer *peer)
{
    if (peer->debt >= DEBT_MOST - RECORD_DEBT)
        return;
    peer->debt += RECORD_DEBT;
    if (one_in(3))
        sealing_add(&peer->sealing, TLS_DATA, "", 0);
    else if (one_in(3))
        sealing_add_alert(&peer->sealing, 1, TLS_USER_CANCELED);
    else
        sealing_add_update(&peer->sealing, one_in(2));
}

static void say_some(struct peer *peer)
{
    size_t piece;

    do {
        if (one_in(4))
            add_without_data(peer);
        else
            add_data(peer);
    } while (one_in(2));
    piece = 1 + any_below(one_in(4) ? 100000 : 3000);
    if (one_in(3) || peer->sealing.sealed.n / piece > 200)
        sealing_say(&peer->sealing);
    else
        sealing_say_pieces(&peer->sealing, piece);
}

/* Ends the output of a peer, in a random way. */
static void say_end(struct peer *peer)
{
    switch (any_below(4)) {
    case 0:
        sim_break(peer->live->socket, ECONNRESET);
        peer->wrong = true;
        break;
    case 1:
        sim_says(peer->live->socket, "no record");
        peer->wrong = true;
        break;
    case 2:
        sim_end(peer->live->socket);
        break;
    default:
        sealing_add_close(&peer->sealing);
        sealing_say(&peer->sealing);
    }
    peer->ended = true;
}

/* The bytes sent to the peer are the begin of `said`. */
static void check_peer(struct peer *peer, const struct peer *other)
{
    sealing_look(&peer->sealing);
    test_require(peer->sealing.plain.n <= other->said_n);
    if (peer->sealing.plain.n > 0)
        test_require(memcmp(peer->sealing.plain.p, other->said, peer->sealing.plain.n) == 0);
}

static void start_trouble(struct fixture *fixture, int seed)
{
    const struct sim_trouble trouble = {
        .partial_send = seed % 3 == 1 ? 300 : 0,
        .partial_recv = seed % 5 == 1 ? 300 : 0,
        .again = seed % 3 == 2 ? 200 : 0,
        .spurious = seed % 5 == 2 ? 200 : 0,
        .late = seed % 5 == 3 ? 200 : 0,
    };

    state = (uint64_t)seed;
    sim_trouble(fixture->sim, (uint64_t)seed, &trouble);
}

/* ---- Echoes ---- */

static void open_peer(struct fixture *fixture, struct peer *peer)
{
    *peer = (struct peer) { .live = create_echoing(fixture) };
    sealing_begin(&peer->sealing, peer->live);
}

static void forget_peer(struct peer *peer)
{
    owner_free(&peer->live);
    free(peer->said);
    sealing_done(&peer->sealing);
}

static void let_peer_act(struct peer *peer)
{
    if (one_in(6) && one_in(10))
        say_end(peer);
    else
        say_some(peer);
}

/* Data is echoed whole if the connection is left alone now. */
static void finish_peer(struct fixture *fixture, struct peer *peer)
{
    struct owner *owner = peer->live;
    bool whole = owner->conn != NULL && conn_is_active(owner->conn) && !peer->ended;

    if (whole) {
        sealing_add_close(&peer->sealing);
        sealing_say(&peer->sealing);
    }
    finish_owner(fixture, owner);
    check_peer(peer, peer);
    if (whole) {
        ck_assert_int_eq(owner->reason, FB_FINISHED);
        ck_assert_uint_eq(peer->sealing.plain.n, peer->said_n);
        ck_assert(peer->sealing.closed);
        ck_assert_uint_eq(peer->sealing.raw.n, 0);
    }
}

START_TEST(whatever_happens)
{
    struct fixture *fixture = sealing_start(_i % FIXTURE_EVENTS, PEERS);
    struct peer *peers = calloc(PEERS, sizeof(*peers));

    ck_assert_ptr_nonnull(peers);
    start_trouble(fixture, _i);
    for (int i = 0; i < PEERS; i++)
        open_peer(fixture, &peers[i]);
    for (int step = 0; step < STEPS; step++) {
        struct peer *peer = &peers[any_below(PEERS)];

        if (peer->live->conn != NULL && peer->live->openings > 0 &&
            !act_on_owner(fixture, peer->live) && !peer->ended)
            let_peer_act(peer);
        if (one_in(3))
            fixture_turn(fixture);
        check_peer(peer, peer);
        if (peer->live->socket->closed) {
            forget_peer(peer);
            open_peer(fixture, peer);
        }
    }
    for (int i = 0; i < PEERS; i++)
        peers[i].live->socket->send_most = SIZE_MAX;
    fixture_run(fixture);
    for (int i = 0; i < PEERS; i++) {
        finish_peer(fixture, &peers[i]);
        forget_peer(&peers[i]);
    }
    free(peers);
    fixture_logged(fixture); /* lines about connections that were reset */
    sealing_stop(fixture);
}
END_TEST

/* ---- Pipes ---- */

static struct conn_pipe_options any_options(void)
{
    struct conn_pipe_options options = {
        .timeout = one_in(2) ? 0 : 1 + any_below(500),
        .ends_together = one_in(3),
        .b_break_ends = one_in(2),
    };

    if (one_in(2))
        return options;
    for (int i = 0; i < 2; i++)
        options.rates[i] = one_in(2) ? 0 : 10000 + any_below(1000000);
    options.most = one_in(2) ? 0 : 1 + any_below(10000);
    return options;
}

/* Lets all waiting connections go on; rates take time. */
static void finish_pipe(struct fixture *fixture, struct peer peers[2], bool whole)
{
    for (int i = 0; i < 2; i++) {
        struct sim_socket *socket = peers[i].live->socket;

        socket->send_most = SIZE_MAX;
        sim_set_room(socket, SIZE_MAX);
        whole = whole && !peers[i].wrong;
        if (peers[i].ended)
            continue;
        sealing_add_close(&peers[i].sealing);
        sealing_say(&peers[i].sealing);
    }
    for (int i = 0; i < 1000 && peers[0].live->conn != NULL; i++)
        fixture_pass(fixture, 1000);
    for (int i = 0; i < 2; i++) {
        check_peer(&peers[i], &peers[!i]);
        ck_assert_uint_eq(peers[i].live->closings, 1);
    }
    for (int i = 0; i < 2 && whole; i++) {
        if (peers[0].live->reason != FB_FINISHED || peers[1].live->reason != FB_FINISHED)
            break;
        ck_assert_uint_eq(peers[i].sealing.plain.n, peers[!i].said_n);
        ck_assert(peers[i].sealing.closed);
    }
}

START_TEST(whatever_happens_in_a_pipe)
{
    struct fixture *fixture = sealing_start(_i % FIXTURE_EVENTS, 2);
    struct conn_pipe_options options;
    struct peer peers[2];

    start_trouble(fixture, _i);
    options = any_options();
    for (int i = 0; i < 2; i++) {
        peers[i] = (struct peer) { .live = owner_open(fixture) };
        peers[i].live->socket->lends = one_in(4);
        peers[i].live->socket->tells_eof = one_in(2);
        sealing_begin(&peers[i].sealing, peers[i].live);
    }
    ck_assert_int_eq(conn_pipe(peers[0].live->conn, peers[1].live->conn, &options), 0);
    for (int step = 0; step < PIPE_STEPS; step++) {
        int i = (int)any_below(2);

        if (one_in(8))
            sim_pass(fixture->sim, any_below(100));
        else if (one_in(3))
            let_room(peers[i].live->socket);
        else if (!peers[i].ended && !peers[i].live->socket->closed && one_in(40))
            say_end(&peers[i]);
        else if (!peers[i].ended && !peers[i].live->socket->closed)
            say_some(&peers[i]);
        if (one_in(3))
            fixture_turn(fixture);
        check_peer(&peers[i], &peers[!i]);
    }
    finish_pipe(fixture, peers, !options.ends_together);
    fixture_end_all(fixture); /* some linger */
    for (int i = 0; i < 2; i++)
        forget_peer(&peers[i]);
    fixture_logged(fixture);
    sealing_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, whatever_happens, 0, test_trials(SEEDS));
    tcase_add_loop_test(tcase, whatever_happens_in_a_pipe, 0, test_trials(PIPE_SEEDS));
}

TEST_MAIN("layer_random", add_tests)

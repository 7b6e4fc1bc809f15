/* SPDX-License-Identifier: BSD-2-Clause */
/* Piped ends with random peers, owners and clocks: bytes arrive whole and in order, and in the end
 * both have ended; a reset loses no earlier bytes. The number of a failing test is its seed. */
#include "support/owner.h"

#include <errno.h>
#include <string.h>

#define SEEDS 300
#define STEPS 60
#define PIECE_MAX 30000
#define SAID_MAX ((size_t)STEPS * PIECE_MAX)

/* Bytes sent by the peer of an end, to be received first by the opposite peer. */
struct end {
    struct owner *owner;
    uint8_t *said;
    size_t said_n;
    bool ended;  /* the peer says no more */
    bool broken; /* ... as it has reset the connection */
};

struct pair {
    struct fixture *fixture;
    struct sim_server *server;
    struct end ends[2];
    int first;          /* the pipe's `a` */
    bool meddled;       /* an owner has ended it */
    bool ends_together; /* an end may take bytes away */
};

static uint32_t any_below(const struct pair *pair, uint32_t below)
{
    return sim_random(pair->fixture->sim, below);
}

static bool one_in(const struct pair *pair, uint32_t n)
{
    return any_below(pair, n) == 0;
}

static void give_up(struct owner *owner)
{
    conn_connect_failed(owner->conn, ETIMEDOUT, IO_CONNECT);
}

static void say_some(const struct pair *pair, struct end *end)
{
    size_t n = 1 + any_below(pair, one_in(pair, 4) ? PIECE_MAX : 100);

    test_require(end->said_n + n <= SAID_MAX);
    for (size_t i = 0; i < n; i++)
        end->said[end->said_n + i] = (uint8_t)any_below(pair, 256);
    sim_say(end->owner->socket, end->said + end->said_n, n);
    end->said_n += n;
}

/* The second end: a client too, or a connection that waits for an answer, or for a descriptor. */
static struct owner *open_second(const struct pair *pair)
{
    const struct owner like = { .expired = give_up };
    struct owner *owner;

    if (one_in(pair, 4))
        return owner_open(pair->fixture);
    if (one_in(pair, 2))
        sim_server_answer(pair->server, SIM_SILENT, 0);
    else
        pair->server->at_once = one_in(pair, 2);
    if (one_in(pair, 3))
        pair->fixture->sim->connect_error = EMFILE;
    owner = owner_connect(pair->fixture, &like);
    if (one_in(pair, 2))
        conn_deadline_set(owner->conn, 1 + any_below(pair, 500));
    return owner;
}

static void note_first(struct fb_conn *b, void *state)
{
    const struct owner *owner = state;

    test_require(owner->conn == b && b->received > 0);
}

/* Half of the pipes have no limits. */
static struct conn_pipe_options any_options(const struct pair *pair)
{
    struct conn_pipe_options options = {
        .timeout = one_in(pair, 2) ? 0 : 1 + any_below(pair, 500),
        .ends_together = one_in(pair, 3),
        .b_break_ends = one_in(pair, 2),
        .first_byte = one_in(pair, 2) ? note_first : NULL,
    };

    if (one_in(pair, 2))
        return options;
    for (int i = 0; i < 2; i++)
        options.rates[i] = one_in(pair, 2) ? 0 : 10000 + any_below(pair, 1000000);
    options.most = one_in(pair, 2) ? 0 : 1 + any_below(pair, 10000);
    return options;
}

static void open_pair(struct pair *pair)
{
    struct conn_pipe_options options = any_options(pair);
    int first = pair->first = (int)any_below(pair, 2);

    for (int i = 0; i < 2; i++) {
        pair->ends[i] = (struct end) { .said = malloc(SAID_MAX) };
        ck_assert_ptr_nonnull(pair->ends[i].said);
    }
    pair->ends[0].owner = owner_open(pair->fixture);
    pair->ends[1].owner = open_second(pair);
    ck_assert_int_eq(
        conn_pipe(pair->ends[first].owner->conn, pair->ends[!first].owner->conn, &options), 0);
    pair->ends_together = options.ends_together;
    fixture_settle(pair->fixture);
}

static void do_to_peer(const struct pair *pair, struct end *end)
{
    struct sim_socket *socket = end->owner->socket;

    if (socket == NULL || socket->closed)
        return;
    switch (any_below(pair, 8)) {
    case 0:
        sim_set_room(socket, one_in(pair, 2) ? 0 : any_below(pair, 50000));
        break;
    case 1:
        sim_set_room(socket, SIZE_MAX);
        break;
    case 2:
        if (!end->ended && one_in(pair, 4)) {
            end->broken = one_in(pair, 4);
            end->broken ? sim_reset(socket, ECONNRESET) : sim_end(socket);
            end->ended = true;
        }
        break;
    default:
        if (!end->ended)
            say_some(pair, end);
    }
}

static void do_to_owner(struct pair *pair, struct owner *owner)
{
    if (owner->conn == NULL || !one_in(pair, 6))
        return;
    pair->meddled = true;
    if (one_in(pair, 2))
        conn_close(owner->conn);
    else
        conn_fail(owner->conn, one_in(pair, 2) ? FB_ABORTED : FB_PEER_GONE);
    fixture_settle(pair->fixture);
}

static void do_something(struct pair *pair)
{
    struct end *end = &pair->ends[any_below(pair, 2)];

    switch (any_below(pair, 12)) {
    case 0:
        sim_pass(pair->fixture->sim, any_below(pair, 100));
        break;
    case 1:
        do_to_owner(pair, end->owner);
        break;
    case 2:
        sim_server_answer(pair->server, one_in(pair, 6) ? SIM_REFUSES : SIM_ACCEPTS, 0);
        break;
    case 3:
        pair->fixture->sim->connect_error = one_in(pair, 2) ? ENFILE : 0;
        break;
    default:
        do_to_peer(pair, end);
    }
}

static void check_end(struct pair *pair, int i)
{
    struct owner *owner = pair->ends[i].owner;
    const struct end *other = &pair->ends[!i];

    if (owner->socket == NULL)
        owner->socket = sim_server_take(pair->server);
    if (owner->socket == NULL)
        return;
    test_require(owner->socket->sent_n <= other->said_n);
    if (owner->socket->sent_n > 0)
        test_require(memcmp(owner->socket->sent, other->said, owner->socket->sent_n) == 0);
}

static void turn(struct pair *pair)
{
    fixture_turn(pair->fixture);
    for (int i = 0; i < 2; i++)
        check_end(pair, i);
}

/* Whether the pipe's `a` was sent all bytes from before a reset of `b`, if only the reset has ended
 * them. */
static void check_reset(const struct pair *pair)
{
    const struct end *a = &pair->ends[pair->first], *b = &pair->ends[!pair->first];

    if (b->broken && !pair->meddled && !pair->ends_together && b->owner->reason == FB_RESET &&
        (a->owner->reason == FB_FINISHED || a->owner->reason == FB_PIPE_BROKEN))
        ck_assert_uint_eq(a->owner->socket->sent_n, b->said_n);
}

/* Lets all that waits for a peer, a server or a descriptor go on. */
static void finish_pair(struct pair *pair)
{
    pair->fixture->sim->connect_error = 0;
    sim_server_answer(pair->server, SIM_ACCEPTS, 0);
    for (int i = 0; i < 4; i++)
        turn(pair);
    for (int i = 0; i < 2; i++) {
        struct sim_socket *socket = pair->ends[i].owner->socket;

        if (socket == NULL)
            continue;
        sim_set_room(socket, SIZE_MAX);
        if (!pair->ends[i].ended)
            sim_end(socket);
    }
    fixture_run(pair->fixture);
    for (int i = 0; i < 1000 && pair->ends[0].owner->conn != NULL; i++)
        fixture_pass(pair->fixture, 1000); /* for the slowest rate */
    for (int i = 0; i < 2; i++) {
        struct end *end = &pair->ends[i];

        check_end(pair, i);
        ck_assert_uint_eq(end->owner->closings, 1);
        ck_assert_uint_eq(end->owner->eofs + end->owner->datas + end->owner->expirations, 0);
        if (end->owner->reason == FB_FINISHED && pair->ends[!i].owner->reason == FB_FINISHED &&
            !pair->meddled && !pair->ends_together)
            ck_assert_uint_eq(end->owner->socket->sent_n, pair->ends[!i].said_n);
    }
    check_reset(pair);
}

START_TEST(whatever_happens)
{
    struct pair pair = { .fixture = fixture_start_net(_i % FIXTURE_EVENTS, 2) };

    if (_i / FIXTURE_EVENTS % 2 == 1)
        sim_splice(pair.fixture->sim);
    pair.server = owner_server(pair.fixture);
    sim_trouble(pair.fixture->sim, (uint64_t)_i, &(const struct sim_trouble) { 0 });
    open_pair(&pair);
    for (int step = 0; step < STEPS; step++) {
        do_something(&pair);
        if (one_in(&pair, 3))
            turn(&pair);
    }
    finish_pair(&pair);
    fixture_end_all(pair.fixture); /* some linger */
    for (int i = 0; i < 2; i++) {
        owner_free(&pair.ends[i].owner);
        free(pair.ends[i].said);
    }
    fixture_logged(pair.fixture); /* lines about connections that were reset */
    fixture_stop(pair.fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, whatever_happens, 0, SEEDS);
}

TEST_MAIN("pipe_random", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* A simulation's trouble: it comes as asked for, and again equally from the same seed; and a
 * correct program gets through. */
#include "support/watched.h"

#include <errno.h>
#include <string.h>

#define PEERS 4
#define SAID 20000
#define SEEDS 20

/* An echo that forgets nothing. */
static void echo_bytes(struct watched *watched, enum event_direction direction)
{
    struct source *source = &watched->source;
    struct io_result result;

    source->events[direction].ready = true;
    do {
        if (watched->held_n > 0) {
            result = watched_send(watched, watched->held, watched->held_n);
            if (result.status == IO_DONE) {
                watched->held_n -= result.n;
                memmove(watched->held, watched->held + result.n, watched->held_n);
            }
        } else {
            result = watched_recv(watched, watched->held, sizeof(watched->held));
            watched->held_n = result.n;
        }
    } while (result.status == IO_DONE);
    watched->ended = watched->ended || result.status == IO_EOF;
    if (result.status == IO_FAILED)
        watched->error = result.error;
    source->events[direction].ready = false;
}

struct peer {
    struct sim_socket *socket;
    struct watched *watched;
    uint8_t said[SAID];
    size_t said_n;
};

static void say_some(struct sim *sim, struct peer *peer)
{
    uint32_t left = (uint32_t)(SAID - peer->said_n);
    size_t n = 1 + sim_random(sim, left < 3000 ? left : 3000);

    for (size_t i = 0; i < n; i++)
        peer->said[peer->said_n + i] = (uint8_t)sim_random(sim, 256);
    sim_say(peer->socket, peer->said + peer->said_n, n);
    peer->said_n += n;
    if (peer->said_n == SAID)
        sim_end(peer->socket);
}

/* Checks that the sent bytes are a prefix of the said bytes, and all of them unless the socket
 * broke. */
static void check_peer(const struct peer *peer)
{
    ck_assert_uint_le(peer->socket->sent_n, SAID);
    if (peer->socket->sent_n > 0)
        ck_assert_mem_eq(peer->socket->sent, peer->said, peer->socket->sent_n);
    if (peer->socket->broke) { /* a send with the error leaves an end */
        ck_assert(peer->watched->error == ECONNRESET || peer->watched->ended);
    } else {
        ck_assert(peer->watched->ended);
        ck_assert_uint_eq(peer->socket->sent_n, SAID);
    }
}

/* Returns a number for the course of events, and counts broken connections. */
static uint64_t play_seed(uint64_t seed, const struct sim_trouble *trouble, unsigned *broke)
{
    struct fixture *fixture = fixture_start_loop(PEERS);
    struct peer *peers = calloc(PEERS, sizeof(*peers));
    uint64_t digest;

    ck_assert_ptr_nonnull(peers);
    sim_trouble(fixture->sim, seed, trouble);
    for (int i = 0; i < PEERS; i++) {
        peers[i].socket = sim_connection(fixture->sim);
        peers[i].socket->tells_eof = i % 2;
        peers[i].watched = watched_create_armed(fixture, peers[i].socket->fd);
        peers[i].watched->run = echo_bytes;
    }
    for (int spoke = 1; spoke > 0; fixture_turn(fixture)) {
        spoke = 0;
        for (int i = 0; i < PEERS; i++)
            if (peers[i].said_n < SAID && sim_random(fixture->sim, 2) == 0)
                say_some(fixture->sim, &peers[i]);
        for (int i = 0; i < PEERS; i++)
            spoke += peers[i].said_n < SAID;
    }
    fixture_run(fixture);
    for (int i = 0; i < PEERS; i++) {
        check_peer(&peers[i]);
        *broke += peers[i].socket->broke;
        watched_close(fixture, &peers[i].watched);
    }
    ck_assert_uint_eq(fixture->sim->fault_n, 0);
    digest = fixture->sim->digest;
    free(peers);
    fixture_stop(fixture);
    return digest;
}

static const struct sim_trouble all = {
    .partial_send = 300,
    .partial_recv = 300,
    .again = 300,
    .spurious = 300,
    .late = 300,
    .reset = 2,
};

START_TEST(the_same_seed_is_the_same_run)
{
    unsigned broke = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        uint64_t digest = play_seed(seed, &all, &broke);

        ck_assert_uint_eq(play_seed(seed, &all, &broke), digest);
        ck_assert_uint_ne(play_seed(seed + SEEDS, &all, &broke), digest);
    }
    ck_assert_uint_gt(broke, 0);
    ck_assert_uint_lt(broke, 3 * SEEDS * PEERS);
}
END_TEST

START_TEST(without_trouble_nothing_breaks)
{
    unsigned broke = 0;

    play_seed(1, NULL, &broke);
    ck_assert_uint_eq(broke, 0);
}
END_TEST

/* A watched that does nothing by itself, with trouble from now on. */
static struct watched *start_connect(
    struct fixture **fixture, struct sim_socket **socket, const struct sim_trouble *trouble)
{
    struct watched *watched;

    *fixture = fixture_start_loop(1);
    *socket = sim_connection((*fixture)->sim);
    watched = watched_create_armed(*fixture, (*socket)->fd);
    fixture_run(*fixture);
    ck_assert_uint_eq(watched->runs[EVENT_WRITE], 1);
    sim_trouble((*fixture)->sim, 7, trouble);
    return watched;
}

static void end_connect(struct fixture *fixture, struct watched *watched)
{
    sim_trouble(fixture->sim, 0, NULL);
    watched_close(fixture, &watched);
    fixture_stop(fixture);
}

START_TEST(a_part_is_taken)
{
    static const struct sim_trouble trouble = { .partial_send = 1000 };
    struct fixture *fixture;
    struct sim_socket *socket;
    struct watched *watched = start_connect(&fixture, &socket, &trouble);
    struct io_result result = watched_send(watched, "0123456789", 10);

    ck_assert_int_eq(result.status, IO_DONE);
    ck_assert_uint_gt(result.n, 0);
    ck_assert_uint_lt(result.n, 10);
    ck_assert_uint_eq(socket->sent_n, result.n);
    fixture_run(fixture);
    ck_assert_uint_eq(watched->runs[EVENT_WRITE], 2); /* allowed to go on */
    ck_assert_uint_eq(watched->runs[EVENT_READ], 0);
    ck_assert_uint_eq(watched_send(watched, "0", 1).n, 1);
    fixture_run(fixture);
    ck_assert_uint_eq(watched->runs[EVENT_WRITE], 2); /* no change */
    end_connect(fixture, watched);
}
END_TEST

START_TEST(a_part_is_given)
{
    static const struct sim_trouble trouble = { .partial_recv = 1000 };
    struct fixture *fixture;
    struct sim_socket *socket;
    struct watched *watched = start_connect(&fixture, &socket, &trouble);
    struct io_result result;

    sim_says(socket, "0123456789");
    fixture_run(fixture);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 1);
    result = watched_recv(watched, watched->held, sizeof(watched->held));
    ck_assert_int_eq(result.status, IO_DONE);
    ck_assert_uint_gt(result.n, 0);
    ck_assert_uint_lt(result.n, 10);
    ck_assert_uint_eq(sim_unread(socket), 10 - result.n);
    fixture_run(fixture);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 2);
    end_connect(fixture, watched);
}
END_TEST

START_TEST(again_is_followed_by_an_event)
{
    static const struct sim_trouble trouble = { .again = 1000 };
    struct fixture *fixture;
    struct sim_socket *socket;
    struct watched *watched = start_connect(&fixture, &socket, &trouble);

    sim_says(socket, "x");
    fixture_run(fixture);
    ck_assert_int_eq(watched_recv(watched, watched->held, 1).status, IO_AGAIN_READ);
    fixture_turn(fixture);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 2);
    ck_assert_int_eq(watched_send(watched, "x", 1).status, IO_AGAIN_WRITE);
    fixture_turn(fixture);
    ck_assert_uint_eq(watched->runs[EVENT_WRITE], 2);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 2);
    end_connect(fixture, watched);
}
END_TEST

START_TEST(events_come_without_a_reason)
{
    static const struct sim_trouble trouble = { .spurious = 1000 };
    struct fixture *fixture;
    struct sim_socket *socket;
    struct watched *watched = start_connect(&fixture, &socket, &trouble);

    ck_assert(sim_idle(fixture->loop));
    fixture_turn(fixture);
    ck_assert_uint_eq(watched->runs[EVENT_READ], 1);
    ck_assert_int_eq(watched_recv(watched, watched->held, 1).status, IO_AGAIN_READ);
    ck_assert(sim_idle(fixture->loop));
    end_connect(fixture, watched);
}
END_TEST

START_TEST(late_events_are_not_lost)
{
    static const struct sim_trouble trouble = { .late = 900 };
    struct fixture *fixture;
    struct sim_socket *socket;
    struct watched *watched = start_connect(&fixture, &socket, &trouble);
    uint64_t before = fixture->sim->clock.mono_ms;
    int turns = 0;

    fixture->sim->auto_time = true;
    sim_says(socket, "x");
    for (; watched->runs[EVENT_READ] == 0; turns++)
        fixture_turn_waiting(fixture, 100);
    ck_assert_int_gt(turns, 1);
    ck_assert_uint_eq(fixture->sim->clock.mono_ms, before); /* the event has come: no time passes */
    end_connect(fixture, watched);
}
END_TEST

/* A send takes the error of a reset; what had come before can be received. */
START_TEST(a_reset_leaves_what_has_come)
{
    static const struct sim_trouble trouble = { .reset = 1000 };
    struct fixture *fixture;
    struct sim_socket *socket;
    struct watched *watched = start_connect(&fixture, &socket, &trouble);

    sim_says(socket, "heard");
    ck_assert_int_eq(watched_send(watched, "x", 1).error, ECONNRESET);
    ck_assert(socket->broke);
    ck_assert_uint_eq(sim_unread(socket), 5);
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(watched_recv(watched, watched->held, 1).n, 1);
    sim_says(socket, "who does not know it may go on");
    sim_end(socket);
    ck_assert_int_eq(watched_recv(watched, watched->held, 1).status, IO_EOF);
    end_connect(fixture, watched);
}
END_TEST

START_TEST(clients_go_before_they_are_accepted)
{
    static const struct sim_trouble trouble = { .aborted = 1000 };
    struct fixture *fixture = fixture_start_loop(1);
    struct sim_socket *listener = sim_listener(fixture->sim, -1);
    struct sim_socket *client = sim_client(listener);
    struct watched *watched = watched_create(fixture, listener->fd);
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    int fd;

    sim_trouble(fixture->sim, 1, &trouble);
    ck_assert_int_eq(
        watched->source.io->accept(&watched->source, &fd, (struct sockaddr *)&peer, &length).error,
        ECONNABORTED);
    ck_assert(client->broke && client->closed);
    ck_assert_uint_eq(listener->waiting, 0);
    end_connect(fixture, watched);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_same_seed_is_the_same_run);
    tcase_add_test(tcase, without_trouble_nothing_breaks);
    tcase_add_test(tcase, a_part_is_taken);
    tcase_add_test(tcase, a_part_is_given);
    tcase_add_test(tcase, again_is_followed_by_an_event);
    tcase_add_test(tcase, events_come_without_a_reason);
    tcase_add_test(tcase, late_events_are_not_lost);
    tcase_add_test(tcase, a_reset_leaves_what_has_come);
    tcase_add_test(tcase, clients_go_before_they_are_accepted);
}

TEST_MAIN("sim_trouble", add_tests)

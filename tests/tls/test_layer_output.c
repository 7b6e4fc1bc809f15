/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of a connection with TLS: sealed once, held where the socket has no room, and sent before
 * all else. */
#include "tls/sealing.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes of a sealed record of n bytes. */
#define SEALED(n) (TLS_HEADER + (n) + 1 + CIPHER_TAG)

START_TEST(output_is_sealed_and_sent_at_once)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    sealed.owner->data = owner_echo;
    for (unsigned i = 1; i <= 3; i++) {
        sealing_says(&sealed.peer, "echo");
        fixture_run(sealed.fixture);
        ck_assert_uint_eq(sealed.owner->socket->sends, i);
    }
    ck_assert_str_eq(sealing_sent(&sealed.peer), "echoechoecho");
    ck_assert_uint_eq(sealed.peer.records, 3);
    ck_assert_uint_eq(sealed.owner->conn->sent, 12); /* plaintext is counted */
    sealed_close(&sealed);
}
END_TEST

START_TEST(much_output_takes_few_system_calls)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    sealed_write(&sealed, sealing_pattern(), 300000, SIZE_MAX);
    ck_assert(sealing_sent_pattern(&sealed.peer, 300000));
    ck_assert_uint_eq(sealed.peer.records, 19);
    ck_assert_uint_eq(sealed.owner->socket->sends, 5);
    ck_assert_uint_eq(sealed.owner->conn->sent, 300000);
    sealed_close(&sealed);
}
END_TEST

START_TEST(records_are_as_short_as_the_peer_wants)
{
    static const size_t lengths[] = { 1, 64, 1000, 16383 };

    for (unsigned i = 0; i < countof(lengths); i++)
        for (int held = 0; held < 2; held++) {
            struct sealed sealed;
            size_t n = lengths[i] == 1 ? 5000 : 200000;

            sealed_open(&sealed, _i);
            layer_of(sealed.owner->conn)->plain_most = (uint16_t)lengths[i];
            sealed_write(&sealed, sealing_pattern(), n, held ? 3 : SIZE_MAX);
            sealed_let_all_leave(&sealed);
            ck_assert(sealing_sent_pattern(&sealed.peer, n));
            ck_assert_uint_eq(sealed.peer.longest, lengths[i]);
            ck_assert_uint_eq(sealed.peer.records, (n + lengths[i] - 1) / lengths[i]);
            sealed_close(&sealed);
        }
}
END_TEST

/* The rest of the handshake, which goes first. */
START_TEST(the_rest_of_the_handshake_leaves_first)
{
    static const uint8_t rest[] = "flight";

    for (size_t room = 0; room <= sizeof(rest); room++)
        for (int early = 0; early < 2; early++) {
            struct sealed sealed = { .fixture = sealing_start(_i, 1) };
            struct tls_session session;

            sealed.fixture->test = &sealed;
            sealed.owner = owner_open(sealed.fixture);
            sealing_init(&sealed.peer, &session);
            sealed.peer.socket = sealed.owner->socket;
            sealed.owner->data = owner_leave_input;
            if (early)
                sealing_says(&sealed.peer, "echo");
            fixture_run(sealed.fixture);
            sealed.owner->data = owner_echo;
            sim_set_room(sealed.owner->socket, room);
            ck_assert_int_eq(
                layer_begin(sealed.owner->conn, &session, (fb_bytes) { rest, sizeof(rest) }), 0);
            if (!early)
                conn_write(sealed.owner->conn, "echo", 4);
            fixture_settle(sealed.fixture);
            fixture_run(sealed.fixture);
            ck_assert_uint_eq(sealed.owner->socket->sent_n, room);
            sealed_let_all_leave(&sealed);
            ck_assert_mem_eq(sealed.owner->socket->sent, rest, sizeof(rest));
            sealed.peer.taken = sizeof(rest);
            ck_assert_str_eq(sealing_sent(&sealed.peer), "echo");
            sealed_close(&sealed);
        }
}
END_TEST

/* In TLS 1.3 the rest of a server's handshake are tickets. */
START_TEST(tickets_may_wait_and_nothing_else)
{
    struct sealed sealed = { .fixture = sealing_start(_i, 1) };
    static const uint8_t tickets[] = "tickets";
    struct sim_socket *socket;
    struct tls_session session;

    sealed.fixture->test = &sealed;
    sealed.owner = owner_open(sealed.fixture);
    socket = sealed.owner->socket;
    sealing_init(&sealed.peer, &session);
    sealed.peer.socket = socket;
    sim_set_room(socket, 3);
    ck_assert_int_eq(
        layer_begin(sealed.owner->conn, &session, (fb_bytes) { tickets, sizeof(tickets) }), 0);
    fixture_settle(sealed.fixture);
    fixture_run(sealed.fixture);
    ck_assert_uint_eq(socket->sent_n, 3);
    sealed_let_all_leave(&sealed);
    ck_assert_uint_eq(socket->sent_n, sizeof(tickets));
    ck_assert_uint_gt(socket->more_sends, 1);
    ck_assert_uint_eq(socket->more_sends, socket->sends);
    socket->more_sends = 0;
    sealed.peer.taken = socket->sent_n;
    sim_set_room(socket, 3);
    conn_write(sealed.owner->conn, "data", 4);
    fixture_settle(sealed.fixture);
    sealed_let_all_leave(&sealed);
    ck_assert_str_eq(sealing_sent(&sealed.peer), "data");
    ck_assert_uint_eq(socket->more_sends, 0);
    sealed_close(&sealed);
}
END_TEST

START_TEST(without_memory_for_the_rest_nothing_changes)
{
    struct sealed sealed = { .fixture = sealing_start(_i, 1) };
    static const uint8_t rest[100000];
    struct tls_session session;

    sealed.fixture->test = &sealed;
    sealed.owner = owner_open(sealed.fixture);
    sealing_init(&sealed.peer, &session);
    sealed.owner->data = owner_leave_input;
    sim_says(sealed.owner->socket, "early");
    fixture_run(sealed.fixture);
    sealed.fixture->memory.until_failure = 0;
    ck_assert_int_eq(
        layer_begin(sealed.owner->conn, &session, (fb_bytes) { rest, sizeof(rest) }), -1);
    sealed.fixture->memory.until_failure = UINT_MAX;
    fixture_settle(sealed.fixture);
    fixture_run(sealed.fixture);
    conn_offer_again(sealed.owner->conn);
    fixture_run(sealed.fixture);
    ck_assert_uint_eq(sealed.owner->datas, 2);
    ck_assert_str_eq(sealed.owner->last, "early");
    ck_assert_uint_eq(sealed.owner->socket->sent_n, 0);
    sealed_close(&sealed);
}
END_TEST

START_TEST(many_pieces_are_gathered)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    for (size_t at = 0, n = 1; at < 200000; at += n, n = n * 3 % 9973 + 1) {
        n = n < 200000 - at ? n : 200000 - at;
        conn_write(sealed.owner->conn, sealing_pattern() + at, n);
        ck_assert_int_eq(conn_write_ref(sealed.owner->conn, "", 0, free, NULL), 0);
    }
    fixture_settle(sealed.fixture);
    fixture_run(sealed.fixture);
    ck_assert(sealing_sent_pattern(&sealed.peer, 200000));
    sealed_close(&sealed);
}
END_TEST

static void write_hello(struct sealed *sealed, int way)
{
    struct fb_conn *conn = sealed->owner->conn;

    switch (way) {
    case 0: /* from lent input */
        sealed->owner->data = owner_echo;
        sealing_says(&sealed->peer, "hello");
        break;
    case 1: /* from the worker's few bytes */
        conn_write(conn, "hello", 5);
        break;
    case 2:
        ck_assert_int_eq(conn_write_ref(conn, "hello", 5, free, NULL), 0);
        break;
    default:
        conn_write(conn, "hello", 5);
        conn_push(conn);
    }
    fixture_settle(sealed->fixture);
    fixture_run(sealed->fixture);
}

START_TEST(output_without_room_is_held)
{
    for (int way = 0; way < 4; way++)
        for (size_t room = 0; room < SEALED(5); room++) {
            struct sealed sealed;
            unsigned sends;

            sealed_open(&sealed, _i);
            sim_set_room(sealed.owner->socket, room);
            write_hello(&sealed, way);
            ck_assert_uint_eq(sealed.owner->socket->sent_n, room);
            ck_assert_str_eq(sealing_sent(&sealed.peer), "");
            ck_assert(sealed.owner->conn->source.held);
            ck_assert_uint_eq(sealed.owner->conn->unsent, 0);
            sends = sealed.owner->socket->sends;
            ck_assert_uint_eq(sends, 1); /* no second try before there is room */
            fixture_pass(sealed.fixture, 1000);
            ck_assert_uint_eq(sealed.owner->socket->sends, sends);
            sealed_let_all_leave(&sealed);
            ck_assert_str_eq(sealing_sent(&sealed.peer), "hello");
            ck_assert(!sealed.owner->conn->source.held);
            ck_assert(!sealed.owner->conn->source.events[EVENT_WRITE].armed);
            /* the next output is sent at once */
            write_hello(&sealed, way);
            ck_assert_str_eq(sealing_sent(&sealed.peer), "hellohello");
            sealed_close(&sealed);
        }
}
END_TEST

START_TEST(output_leaves_in_any_pieces)
{
    static const size_t pieces[] = { 1, 7, 1000, 16383, 65536 };

    for (unsigned i = 0; i < countof(pieces); i++) {
        struct sealed sealed;
        size_t n = pieces[i] < 10 ? 3000 : 200000;

        sealed_open(&sealed, _i);
        sealed.owner->socket->send_most = pieces[i];
        for (size_t at = 0; at < n; at += 1000) {
            conn_write(sealed.owner->conn, sealing_pattern() + at, 1000);
            fixture_settle(sealed.fixture);
        }
        fixture_run(sealed.fixture);
        ck_assert(sealing_sent_pattern(&sealed.peer, n));
        sealed_close(&sealed);
    }
}
END_TEST

/* Held output is bounded: the rest waits as plaintext, and back-pressure works. */
START_TEST(a_slow_reader_holds_input_back)
{
    struct sealed sealed;
    struct owner *owner;

    sealed_open(&sealed, _i);
    owner = sealed.owner;
    owner->data = owner_echo;
    sim_set_room(owner->socket, 0);
    for (size_t at = 0; at < 400000; at += 10000) {
        sealing_add_data(&sealed.peer, sealing_pattern() + at, 10000, 10000);
        sealing_say(&sealed.peer);
        fixture_run(sealed.fixture);
    }
    ck_assert(owner->conn->paused);
    ck_assert_uint_gt(owner->conn->unsent, 64 * 1024);
    ck_assert_uint_lt(owner->conn->received, 300000);
    ck_assert_uint_eq(owner->writables, 0);
    sealed_let_all_leave(&sealed);
    ck_assert(sealing_sent_pattern(&sealed.peer, 400000));
    ck_assert_uint_gt(owner->writables, 0);
    sealed_close(&sealed);
}
END_TEST

static int make_file(size_t n)
{
    int fd = memfd_create("file", MFD_CLOEXEC);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(write(fd, sealing_pattern(), n), (ssize_t)n);
    return fd;
}

/* Writes on as long as memory is given back; what is written last is sent at once. */
static void write_again(void *arg)
{
    struct owner *owner = arg;

    if (owner->conn == NULL || owner->n == 0)
        return;
    owner->n--;
    ck_assert_int_eq(conn_write_ref(owner->conn, "a", 1, write_again, owner), 0);
    if (owner->n == 0)
        conn_push(owner->conn);
}

/* A flush that would take too long is left to the next turn, with output that is held. */
START_TEST(memory_given_back_is_written_again)
{
    for (unsigned n = 1; n < 20; n++) {
        struct sealed sealed;

        sealed_open(&sealed, _i);
        sealed.owner->n = n;
        sim_set_room(sealed.owner->socket, (n - 1) * SEALED(1) + 9);
        write_again(sealed.owner);
        fixture_settle(sealed.fixture);
        fixture_check(sealed.fixture);
        fixture_run(sealed.fixture);
        ck_assert(sealed.owner->conn->source.held);
        sealed_let_all_leave(&sealed);
        sealing_look(&sealed.peer);
        ck_assert_uint_eq(sealed.peer.plain.n, n);
        sealed_close(&sealed);
    }
}
END_TEST

START_TEST(a_file_is_sealed)
{
    static const size_t rooms[] = { 0, 1, 30, 65536, 65658, 70000, SIZE_MAX };

    for (unsigned i = 0; i < countof(rooms); i++) {
        struct sealed sealed;
        struct fb_conn *conn;

        sealed_open(&sealed, _i);
        conn = sealed.owner->conn;
        sim_set_room(sealed.owner->socket, rooms[i]);
        conn_write(conn, sealing_pattern(), 10);
        ck_assert_int_eq(conn_write_file(conn, make_file(SEALING_PATTERN), 10, 500000), 0);
        conn_write(conn, sealing_pattern() + 500010, 90);
        fixture_settle(sealed.fixture);
        fixture_run(sealed.fixture);
        sealed_let_all_leave(&sealed);
        ck_assert(sealing_sent_pattern(&sealed.peer, 500100));
        ck_assert_uint_eq(conn->sent, 500100);
        sealed_close(&sealed);
    }
}
END_TEST

START_TEST(a_file_without_room_is_tried_once)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    sim_set_room(sealed.owner->socket, 100);
    ck_assert_int_eq(conn_write_file(sealed.owner->conn, make_file(200000), 0, 200000), 0);
    fixture_settle(sealed.fixture);
    fixture_run(sealed.fixture);
    ck_assert_uint_eq(sealed.owner->socket->sends, 1);
    ck_assert(sealed.owner->conn->source.held);
    sealed_let_all_leave(&sealed);
    ck_assert(sealing_sent_pattern(&sealed.peer, 200000));
    sealed_close(&sealed);
}
END_TEST

START_TEST(a_file_that_ends_early_is_an_error)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    ck_assert_int_eq(conn_write_file(sealed.owner->conn, make_file(100000), 0, 100001), 0);
    fixture_settle(sealed.fixture);
    fixture_run(sealed.fixture);
    ck_assert_int_eq(sealed.owner->reason, FB_IO_ERROR);
    ck_assert_ptr_nonnull(strstr(fixture_logged(sealed.fixture), "a file ends before the end"));
    ck_assert(sealing_sent_pattern(&sealed.peer, 100000));
    ck_assert(!sealed.peer.closed); /* the peer sees that more was to come */
    sealed_close(&sealed);
}
END_TEST

START_TEST(a_socket_that_takes_no_more_ends_the_connection)
{
    for (int held = 0; held < 2; held++) {
        struct sealed sealed;

        sealed_open(&sealed, _i);
        if (held)
            sealed_write(&sealed, "held", 4, 3);
        sim_break_output(sealed.owner->socket, EPIPE);
        conn_write(sealed.owner->conn, "more", 4);
        fixture_settle(sealed.fixture);
        sealed_let_all_leave(&sealed);
        ck_assert_int_eq(sealed.owner->reason, FB_RESET);
        fixture_logged(sealed.fixture);
        sealed_close(&sealed);
    }
}
END_TEST

/* Input, output and keys with one failing allocation; says whether an allocation has failed. */
static bool exercise_with(enum fixture_events events, unsigned failing)
{
    struct sealed sealed;
    bool failed;

    sealed_open(&sealed, events);
    sealed.fixture->memory.until_failure = failing;
    sealed.fixture->memory.failures_max = 1;
    sealed.owner->data = owner_echo;
    sim_set_room(sealed.owner->socket, 30);
    sealing_add_data(&sealed.peer, sealing_pattern(), 60000, TLS_PLAIN_MOST);
    sealing_add_update(&sealed.peer, true);
    sealing_add_data(&sealed.peer, sealing_pattern() + 60000, 60000, TLS_PLAIN_MOST);
    sealing_say_pieces(&sealed.peer, 40000);
    for (int i = 0; i < 10; i++)
        fixture_turn(sealed.fixture);
    sealed_let_all_leave(&sealed);
    if (sealed.owner->conn != NULL) {
        sim_set_room(sealed.owner->socket, 5);
        conn_close(sealed.owner->conn);
        fixture_settle(sealed.fixture);
        sealed_let_all_leave(&sealed);
    }
    failed = sealed.fixture->memory.failures > 0;
    sealed.fixture->memory.until_failure = UINT_MAX;
    ck_assert_ptr_null(sealed.owner->conn);
    fixture_logged(sealed.fixture);
    if (failed)
        ck_assert_int_ne(sealed.owner->reason, FB_FINISHED);
    else
        ck_assert(sealing_sent_pattern(&sealed.peer, 120000) && sealed.peer.closed);
    sealed_close(&sealed);
    return failed;
}

START_TEST(without_memory_the_connection_ends)
{
    unsigned n = 0;

    while (exercise_with(_i, n))
        n++;
    ck_assert_uint_gt(n, 4);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, output_is_sealed_and_sent_at_once, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, much_output_takes_few_system_calls, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, records_are_as_short_as_the_peer_wants, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, tickets_may_wait_and_nothing_else, 0, 2);
    tcase_add_loop_test(tcase, the_rest_of_the_handshake_leaves_first, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, without_memory_for_the_rest_nothing_changes, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, many_pieces_are_gathered, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, output_without_room_is_held, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, output_leaves_in_any_pieces, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_slow_reader_holds_input_back, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, memory_given_back_is_written_again, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_file_is_sealed, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_file_without_room_is_tried_once, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_file_that_ends_early_is_an_error, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_socket_that_takes_no_more_ends_the_connection, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, without_memory_the_connection_ends, 0, FIXTURE_EVENTS);
}

TEST_MAIN("layer_output", add_tests)

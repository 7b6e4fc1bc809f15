/* SPDX-License-Identifier: BSD-2-Clause */
/* The contract, as a layer needs it: a connection with TLS upon the operations of each mechanism,
 * on sockets of the kernel. */
#include "contract/contract.h"
#include "tls/sealing.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connection and its peer. */
struct joined {
    struct fixture *fixture;
    struct owner *owner;
    struct sealing peer;
    int fd;     /* the peer's; -1: closed */
    bool ended; /* output of the connection */
};

/* Little room in the kernel, so that output has to wait. */
static void narrow(int fd)
{
    static const int bytes = 8192;

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
}

static void join_plainly(struct joined *joined, int i)
{
    int fds[2];

    make_tcp_pair(fds);
    narrow(fds[0]);
    *joined = (struct joined) { .fixture = sealing_start_on(mechanism_at(i), 2), .fd = fds[1] };
    joined->owner = owner_adopt(joined->fixture, fds[0]);
    turn_until(joined->fixture, joined->owner->openings == 1);
}

static void join(struct joined *joined, int i)
{
    join_plainly(joined, i);
    sealing_begin(&joined->peer, joined->owner);
}

/* The peer writes and reads as much as the socket takes and has. */
static bool exchange(struct joined *joined)
{
    sealing_write(&joined->peer, joined->fd);
    joined->ended = joined->ended || !sealing_read(&joined->peer, joined->fd);
    return true;
}

#define exchange_until(joined, condition)                                                          \
    turn_until((joined)->fixture, exchange(joined) && (condition))

static bool has_pattern(const struct joined *joined, size_t n)
{
    const struct sealing_bytes *plain = &joined->peer.plain;

    return plain->n == n && (n == 0 || memcmp(plain->p, sealing_pattern(), n) == 0);
}

static void part(struct joined *joined)
{
    if (joined->fd != -1)
        close(joined->fd);
    if (joined->owner->conn != NULL)
        owner_abort(joined->owner);
    fixture_settle(joined->fixture);
    turn_until(joined->fixture, joined->fixture->net->connection_n == 0);
    fixture_logged(joined->fixture);
    owner_free(&joined->owner);
    sealing_done(&joined->peer);
    sealing_stop(joined->fixture);
}

START_TEST(echoes_come_back)
{
    static const size_t sizes[] = { 1, 100, 16384, 16385, 65535, 65536, 65537, 300000 };
    struct joined joined;
    size_t n = 0;

    join(&joined, _i);
    joined.owner->data = owner_echo;
    for (unsigned i = 0; i < countof(sizes); i++) {
        sealing_add_data(&joined.peer, sealing_pattern() + n, sizes[i], TLS_PLAIN_MOST);
        if (i % 2 == 1)
            sealing_add_update(&joined.peer, true);
        n += sizes[i];
        exchange_until(&joined, joined.peer.plain.n == n);
        ck_assert(has_pattern(&joined, n));
    }
    exchange_until(&joined, joined.peer.updates > 0);
    part(&joined);
}
END_TEST

/* Records come byte by byte, each with a turn. */
START_TEST(split_records_are_received)
{
    struct joined joined;

    join(&joined, _i);
    sealing_add_text(&joined.peer, "hello");
    for (size_t at = 0; at < joined.peer.sealed.n; at++) {
        ck_assert_int_eq(send(joined.fd, joined.peer.sealed.p + at, 1, 0), 1);
        fixture_turn_waiting(joined.fixture, 1);
    }
    turn_until(joined.fixture, joined.owner->datas == 1);
    ck_assert_str_eq(joined.owner->last, "hello");
    part(&joined);
}
END_TEST

START_TEST(much_goes_both_ways)
{
    struct joined joined;

    join(&joined, _i);
    sealing_add_data(&joined.peer, sealing_pattern(), SEALING_PATTERN, TLS_PLAIN_MOST);
    sealing_add_data(&joined.peer, sealing_pattern(), SEALING_PATTERN, 1000);
    conn_write(joined.owner->conn, sealing_pattern(), SEALING_PATTERN);
    fixture_settle(joined.fixture);
    exchange_until(&joined, joined.peer.plain.n == SEALING_PATTERN &&
                                joined.owner->conn->received == 2 * SEALING_PATTERN);
    ck_assert(has_pattern(&joined, SEALING_PATTERN));
    ck_assert_uint_eq(joined.owner->conn->sent, SEALING_PATTERN);
    part(&joined);
}
END_TEST

START_TEST(held_output_leaves_before_the_end)
{
    for (int shuts = 0; shuts < 2; shuts++) {
        struct joined joined;
        size_t n = 0;

        join(&joined, _i);
        while (!joined.owner->conn->source.held && n < 100 * 7001) { /* as a peer reads nothing */
            conn_write(joined.owner->conn, sealing_pattern() + n, 7001);
            fixture_settle(joined.fixture);
            fixture_turn(joined.fixture);
            n += 7001;
        }
        sealing_add_update(&joined.peer, true); /* whose answer has to wait */
        sealing_write(&joined.peer, joined.fd);
        for (int i = 0; i < 10; i++)
            fixture_turn_waiting(joined.fixture, 1);
        if (shuts)
            conn_shutdown(joined.owner->conn);
        else
            conn_close(joined.owner->conn);
        fixture_settle(joined.fixture);
        fixture_turn(joined.fixture);
        exchange_until(&joined, joined.ended);
        ck_assert(has_pattern(&joined, n));
        ck_assert(joined.peer.closed);
        ck_assert_uint_eq(joined.peer.updates, 1);
        ck_assert_uint_eq(joined.peer.raw.n, 0);
        part(&joined);
    }
}
END_TEST

/* Records have come with what the owner has left, lie in the kernel, or with the mechanism. */
START_TEST(early_records_are_opened)
{
    for (int way = 0; way < 3; way++) {
        struct joined joined;
        struct tls_session session;
        size_t n = way == 2 ? 100000 : 3000;

        join_plainly(&joined, _i);
        sealing_init(&joined.peer, &session);
        sealing_add_data(&joined.peer, sealing_pattern(), n, 1000);
        if (way == 1) {
            conn_stop(joined.owner->conn);
            fixture_settle(joined.fixture);
        }
        joined.owner->data = owner_leave_input;
        sealing_write(&joined.peer, joined.fd);
        for (int i = 0; i < 5; i++)
            fixture_turn_waiting(joined.fixture, 1);
        ck_assert_uint_eq(joined.owner->datas == 0, way == 1);
        joined.owner->data = owner_echo;
        ck_assert_int_eq(layer_begin(joined.owner->conn, &session, (fb_bytes) { NULL, 0 }), 0);
        conn_resume(joined.owner->conn);
        exchange_until(&joined, joined.peer.plain.n == n);
        ck_assert(has_pattern(&joined, n));
        part(&joined);
    }
}
END_TEST

START_TEST(halves_end_one_by_one)
{
    for (int fin = 0; fin < 2; fin++) {
        struct joined joined;

        join(&joined, _i);
        joined.owner->eof = owner_ignore_eof;
        sealing_add_text(&joined.peer, "last");
        sealing_add_close(&joined.peer);
        sealing_write(&joined.peer, joined.fd);
        if (fin)
            ck_assert_int_eq(shutdown(joined.fd, SHUT_WR), 0);
        turn_until(joined.fixture, joined.owner->eofs == 1);
        ck_assert_uint_eq(joined.owner->datas, 1);
        conn_write(joined.owner->conn, sealing_pattern(), 200000);
        fixture_settle(joined.fixture);
        exchange_until(&joined, joined.peer.plain.n == 200000);
        ck_assert(has_pattern(&joined, 200000) && !joined.peer.closed);
        conn_shutdown(joined.owner->conn);
        fixture_settle(joined.fixture);
        exchange_until(&joined, joined.ended);
        ck_assert(joined.peer.closed);
        ck_assert_int_eq(joined.owner->reason, FB_FINISHED);
        part(&joined);
    }
}
END_TEST

START_TEST(a_truncated_end_is_told)
{
    struct joined joined;

    join(&joined, _i);
    sealing_add_text(&joined.peer, "whole");
    sealing_write(&joined.peer, joined.fd);
    sealing_add_text(&joined.peer, "part");
    ck_assert_int_eq(send(joined.fd, joined.peer.sealed.p, 9, 0), 9);
    close(joined.fd);
    joined.fd = -1;
    turn_until(joined.fixture, joined.owner->closings == 1);
    ck_assert_uint_eq(joined.owner->eofs, 1);
    ck_assert_int_eq(joined.owner->reason, FB_FINISHED);
    ck_assert_ptr_nonnull(strstr(fixture_logged(joined.fixture), "without close_notify"));
    part(&joined);
}
END_TEST

START_TEST(a_wrong_record_is_answered)
{
    for (int echoes = 0; echoes < 2; echoes++) {
        struct joined joined;

        join(&joined, _i);
        if (echoes) /* too late: the connection is reset */
            joined.owner->data = owner_echo;
        sealing_add_text(&joined.peer, "right");
        sealing_add(&joined.peer, 99, "wrong", 5);
        exchange_until(&joined, joined.owner->closings == 1);
        ck_assert_str_eq(joined.owner->last, "right");
        ck_assert_int_eq(joined.owner->reason, FB_IO_ERROR);
        exchange_until(&joined, joined.ended);
        ck_assert_int_eq(joined.peer.alert, TLS_UNEXPECTED_MESSAGE);
        part(&joined);
    }
}
END_TEST

/* Unread input does not take away what was sent. */
START_TEST(a_close_with_unread_input_is_no_reset)
{
    struct joined joined;

    join(&joined, _i);
    conn_stop(joined.owner->conn);
    fixture_settle(joined.fixture);
    sealing_add_data(&joined.peer, sealing_pattern(), 20000, 1000);
    sealing_write(&joined.peer, joined.fd);
    for (int i = 0; i < 5; i++)
        fixture_turn_waiting(joined.fixture, 1);
    conn_write(joined.owner->conn, sealing_pattern(), 5000);
    conn_close(joined.owner->conn);
    fixture_settle(joined.fixture);
    exchange_until(&joined, joined.ended);
    ck_assert(has_pattern(&joined, 5000));
    ck_assert(joined.peer.closed);
    ck_assert_uint_eq(joined.owner->datas, 0);
    part(&joined);
}
END_TEST

START_TEST(a_file_is_sealed)
{
    struct joined joined;
    int file = memfd_create("file", MFD_CLOEXEC);

    ck_assert_int_ne(file, -1);
    ck_assert_int_eq(write(file, sealing_pattern(), 500000), 500000);
    join(&joined, _i);
    ck_assert_int_eq(conn_write_file(joined.owner->conn, file, 0, 500000), 0);
    conn_write(joined.owner->conn, sealing_pattern() + 500000, 100);
    fixture_settle(joined.fixture);
    exchange_until(&joined, joined.peer.plain.n == 500100);
    ck_assert(has_pattern(&joined, 500100));
    part(&joined);
}
END_TEST

/* Bytes of a plain connection, which could go past this process, do not. */
START_TEST(a_pipe_is_sealed)
{
    struct joined joined;
    struct owner *plain;
    int fds[2];
    size_t said = 0;

    join(&joined, _i);
    make_tcp_pair(fds);
    plain = owner_adopt(joined.fixture, fds[0]);
    turn_until(joined.fixture, plain->openings == 1);
    ck_assert_int_eq(owner_pipe(joined.owner, plain, 0), 0);
    fixture_settle(joined.fixture);
    sealing_add_text(&joined.peer, "question");
    while (joined.peer.plain.n < SEALING_PATTERN) {
        ssize_t n = send(
            fds[1], sealing_pattern() + said, SEALING_PATTERN - said, MSG_DONTWAIT | MSG_NOSIGNAL);

        said += n > 0 ? (size_t)n : 0;
        exchange(&joined);
        fixture_turn_waiting(joined.fixture, 1);
    }
    ck_assert(has_pattern(&joined, SEALING_PATTERN));
    ck_assert_int_eq(shutdown(fds[1], SHUT_WR), 0);
    exchange_until(&joined, joined.ended);
    ck_assert(joined.peer.closed);
    sealing_add_close(&joined.peer);
    exchange_until(&joined, plain->closings == 1);
    ck_assert_int_eq(plain->reason, FB_FINISHED);
    owner_free(&plain);
    close(fds[1]);
    part(&joined);
}
END_TEST

static void add_tests(TCase *tcase, int from, int to)
{
    tcase_add_real_test(tcase, echoes_come_back, from, to);
    tcase_add_real_test(tcase, split_records_are_received, from, to);
    tcase_add_real_test(tcase, much_goes_both_ways, from, to);
    tcase_add_real_test(tcase, held_output_leaves_before_the_end, from, to);
    tcase_add_real_test(tcase, early_records_are_opened, from, to);
    tcase_add_real_test(tcase, halves_end_one_by_one, from, to);
    tcase_add_real_test(tcase, a_truncated_end_is_told, from, to);
    tcase_add_real_test(tcase, a_wrong_record_is_answered, from, to);
    tcase_add_real_test(tcase, a_close_with_unread_input_is_no_reset, from, to);
    tcase_add_real_test(tcase, a_file_is_sealed, from, to);
    tcase_add_real_test(tcase, a_pipe_is_sealed, from, to);
}

CONTRACT_MAIN("layer", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Little output, copied into the worker's own bytes without a chunk, unless the peer does not take
 * it at once or the output grows. */
#include "support/owner.h"

#include <limits.h>
#include <string.h>

static char expected[2 * NET_LITTLE];

static void end_both(struct fixture *fixture, struct owner **a, struct owner **b)
{
    fixture_end_all(fixture);
    owner_free(a);
    owner_free(b);
    fixture_stop(fixture);
}

static void fill_expected(void)
{
    for (size_t i = 0; i < sizeof(expected); i++)
        expected[i] = (char)('a' + i % 26);
}

static void check_sent(const struct owner *owner, size_t n)
{
    ck_assert_uint_eq(owner->socket->sent_n, n);
    ck_assert(n == 0 || memcmp(owner->socket->sent, expected, n) == 0);
}

/* Writes n bytes, so many at a time, from memory that is used again at once. */
static void write_parts(struct owner *owner, size_t n, size_t part)
{
    char bytes[sizeof(expected)];

    for (size_t at = 0; at < n; at += part) {
        size_t length = n - at < part ? n - at : part;

        memcpy(bytes, expected + at, length);
        conn_write(owner->conn, bytes, length);
        memset(bytes, '#', length);
    }
}

static const struct {
    size_t n, part;
} writes[] = {
    { 1, 1 },
    { 64, 64 },
    { NET_LITTLE, NET_LITTLE },
    { NET_LITTLE, 1 },
    { NET_LITTLE - 1, 100 },
    { NET_LITTLE + 1, NET_LITTLE + 1 },
    { NET_LITTLE + 1, NET_LITTLE },
    { NET_LITTLE + 1, 1 },
    { 2 * NET_LITTLE, 777 },
};

static size_t write_one(struct owner *owner, fb_bytes in)
{
    write_parts(owner, writes[owner->n].n, writes[owner->n].part);
    return in.n;
}

START_TEST(little_is_sent_without_a_chunk)
{
    size_t n = writes[_i / FIXTURE_EVENTS].n;
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 2);
    struct owner *owner = owner_open(fixture), *other = owner_open(fixture);

    fill_expected();
    owner->n = (size_t)(_i / FIXTURE_EVENTS);
    owner->data = write_one;
    if (n <= NET_LITTLE) {
        fixture->memory.until_failure = 0; /* an allocation would end the connection */
        fixture->memory.failures_max = UINT_MAX;
    }
    sim_says(owner->socket, "?");
    fixture_run(fixture);
    ck_assert_uint_eq(owner->socket->sends, 1);
    if (n <= NET_LITTLE) {
        ck_assert_int_eq(owner->socket->piece_n, 1);
        ck_assert_ptr_eq(owner->socket->pieces[0].iov_base, owner->conn->net->little);
    }
    check_sent(owner, n);
    end_both(fixture, &owner, &other);
}
END_TEST

static const size_t rooms[] = { 0, 1, 63, 1000 };

/* Bytes left unread by the peer are copied to the connection before the buffer's next use. */
START_TEST(what_the_peer_leaves_is_kept)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 2);
    struct owner *owner = owner_open(fixture), *other = owner_open(fixture);

    fill_expected();
    owner->data = other->data = write_one;
    owner->n = 3;
    other->n = 1;
    sim_set_room(owner->socket, rooms[_i / FIXTURE_EVENTS]);
    sim_says(owner->socket, "?");
    fixture_run(fixture);
    check_sent(owner, rooms[_i / FIXTURE_EVENTS]);
    sim_says(other->socket, "?");
    fixture_run(fixture);
    check_sent(other, 64);
    sim_set_room(owner->socket, SIZE_MAX);
    fixture_run(fixture);
    check_sent(owner, NET_LITTLE);
    end_both(fixture, &owner, &other);
}
END_TEST

/* Writes to both in turn: the worker's own bytes are one connection's at a time. */
static size_t write_both(struct owner *owner, fb_bytes in)
{
    for (size_t at = 0; at < 100; at += 10) {
        conn_write(owner->conn, expected + at, 10);
        conn_write(owner->other->conn, expected + at, 10);
    }
    return in.n;
}

START_TEST(two_connections_in_one_callback)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *owner = owner_open(fixture), *other = owner_open(fixture);

    fill_expected();
    owner->other = other;
    owner->data = write_both;
    sim_says(owner->socket, "?");
    fixture_run(fixture);
    check_sent(owner, 100);
    check_sent(other, 100);
    ck_assert_uint_eq(owner->socket->sends + other->socket->sends, 2);
    end_both(fixture, &owner, &other);
}
END_TEST

static size_t write_and_close(struct owner *owner, fb_bytes in)
{
    write_parts(owner, 64, 64);
    conn_close(owner->conn);
    return in.n;
}

START_TEST(the_last_words_are_sent)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *owner = owner_open(fixture), *other = owner_open(fixture);
    struct sim_socket *socket = owner->socket;

    fill_expected();
    owner->data = write_and_close;
    sim_says(socket, "?");
    fixture_run(fixture);
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    ck_assert_uint_eq(socket->sent_n, 64);
    ck_assert_int_eq(memcmp(socket->sent, expected, 64), 0);
    end_both(fixture, &owner, &other);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const int n = FIXTURE_EVENTS;

    tcase_add_loop_test(tcase, little_is_sent_without_a_chunk, 0, (int)countof(writes) * n);
    tcase_add_loop_test(tcase, what_the_peer_leaves_is_kept, 0, (int)countof(rooms) * n);
    tcase_add_loop_test(tcase, two_connections_in_one_callback, 0, n);
    tcase_add_loop_test(tcase, the_last_words_are_sent, 0, n);
}

TEST_MAIN("conn_little", add_tests)

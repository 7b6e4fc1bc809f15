/* SPDX-License-Identifier: BSD-2-Clause */
/* Links to an engine in this process, and to a keeper that the test plays. */
#include "tls/link_keeper.h"
#include "tls/link_local.h"
#include "tls/linking.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Gives a user the other's bytes, in pieces. */
static void carry(struct user *from, struct user *to, size_t piece)
{
    static uint8_t bytes[TLS_FLIGHT_MOST];
    size_t n = from->out_n;

    memcpy(bytes, from->out, n);
    for (size_t i = 0; i < n; i += piece) {
        feed(to, bytes + i, n - i < piece ? n - i : piece);
        work();
    }
}

START_TEST(a_handshake_comes_to_its_end)
{
    static const size_t pieces[] = { 1, 7, 1000 };

    start(_i);
    for (unsigned i = 0; i < countof(pieces); i++) {
        memcpy(name, "one.tests", sizeof(name));
        begin(&peer, TLS_CLIENT);
        begin(&users[0], TLS_SERVER);
        feed(&peer, NULL, 0);
        memset(name, 'x', sizeof(name));
        work();
        ck_assert_int_eq(peer.step, TLS_MORE);
        carry(&peer, &users[0], pieces[i]);
        carry(&users[0], &peer, pieces[i]);
        ck_assert_int_eq(peer.step, TLS_DONE);
        carry(&peer, &users[0], pieces[i]);
        ck_assert_int_eq(users[0].step, TLS_DONE);
        ck_assert_mem_eq(users[0].session.in.key, peer.session.out.key, CIPHER_KEY_MOST);
        ck_assert_uint_eq(users[0].session.name_n, sizeof(name));
        ck_assert_mem_eq(users[0].session.name, "one.tests", sizeof(name));
    }
    stop();
}
END_TEST

START_TEST(cancelled_handshakes_are_forgotten)
{
    start(_i);
    /* before its bytes, with bytes under way, and between replies */
    begin(&users[0], TLS_SERVER);
    tls_link_cancel(link_, &users[0].pending);
    begin(&users[0], TLS_SERVER);
    feed(&users[0], "\x16", 1);
    tls_link_cancel(link_, &users[0].pending);
    ck_assert_uint_eq(users[0].pending.number, 0);
    work();
    ck_assert_uint_eq(users[0].replies, 0);
    begin(&users[0], TLS_SERVER);
    feed(&users[0], "\x16", 1);
    work();
    ck_assert_uint_eq(users[0].replies, 1);
    tls_link_cancel(link_, &users[0].pending);
    work();
    ck_assert_uint_eq(users[0].replies, 1);
    ck_assert_uint_eq(tls_handshakes_count(handshakes), 0);
    stop();
}
END_TEST

START_TEST(more_than_the_most_are_refused)
{
    start(_i);
    for (unsigned i = 0; i < TLS_HANDSHAKES_MOST; i++)
        begin(&users[i], TLS_SERVER);
    users[TLS_HANDSHAKES_MOST] = (struct user) { .pending = { .replied = note_reply } };
    ck_assert_int_eq(tls_link_begin(link_, &users[TLS_HANDSHAKES_MOST].pending,
                         &(struct tls_start) { .role = TLS_SERVER }),
        -1);
    ck_assert_str_eq(fixture_logged(fixture),
        "t: [warn] new handshakes are refused, because 1000 are under way\n");
    tls_link_cancel(link_, &users[500].pending);
    begin(&users[500], TLS_SERVER);
    for (unsigned i = 0; i < TLS_HANDSHAKES_MOST; i++)
        tls_link_cancel(link_, &users[i].pending);
    stop();
}
END_TEST

START_TEST(a_late_reply_is_ignored)
{
    struct tls_request request, again;

    start(REMOTE);
    begin(&users[0], TLS_SERVER);
    feed(&users[0], "x", 1);
    ck_assert(receive(&request));
    ck_assert_int_eq(request.kind, TLS_BEGIN);
    tls_link_cancel(link_, &users[0].pending);
    begin(&users[0], TLS_SERVER); /* in the same place */
    feed(&users[0], "y", 1);
    reply_to(request.number, TLS_FAILED, &(struct tls_reply) { .text = "late" });
    fixture_turn(fixture);
    ck_assert_uint_eq(users[0].replies, 0);
    ck_assert(receive(&again));
    ck_assert_int_eq(again.kind, TLS_CANCEL);
    ck_assert_uint_eq(again.number, request.number);
    ck_assert(receive(&again));
    ck_assert_uint_eq(TLS_PLACE(again.number), TLS_PLACE(request.number));
    ck_assert_uint_ne(again.number, request.number);
    reply_to(again.number, TLS_FAILED, &(struct tls_reply) { .text = "in time" });
    fixture_turn(fixture);
    ck_assert_str_eq(users[0].text, "in time");
    stop();
}
END_TEST

START_TEST(a_flight_in_parts_comes_at_once)
{
    static uint8_t flight[TLS_FLIGHT_MOST];
    struct tls_reply reply = { .used = 1, .out = flight, .out_n = sizeof(flight) };
    struct tls_request request;

    start(REMOTE);
    for (size_t i = 0; i < sizeof(flight); i++)
        flight[i] = (uint8_t)(i / 3);
    for (unsigned i = 0; i < 2; i++) {
        begin(&users[0], TLS_SERVER);
        feed(&users[0], "x", 1);
        ck_assert(receive(&request));
        reply_to(request.number, TLS_MORE, &reply);
        fixture_turn(fixture);
        ck_assert_uint_eq(users[0].replies, 1);
        ck_assert_uint_eq(users[0].out_n, sizeof(flight));
        ck_assert_mem_eq(users[0].out, flight, sizeof(flight));
        tls_link_cancel(link_, &users[0].pending);
        ck_assert(receive(&request));
    }
    stop();
}
END_TEST

/* Begins handshakes 0 and 1, of which the first waits for a reply. */
static uint32_t begin_two(void)
{
    struct tls_request request;

    begin(&users[0], TLS_SERVER);
    begin(&users[1], TLS_SERVER);
    feed(&users[0], "xyz", 3);
    ck_assert(receive(&request));
    return request.number;
}

/* The handshake of the dead keeper has failed; later handshakes are the next keeper's. */
static void expect_failed(const char *text)
{
    ck_assert_uint_eq(users[0].replies, 1);
    ck_assert_int_eq(users[0].step, TLS_FAILED);
    ck_assert_str_eq(users[0].text, text);
    ck_assert_uint_eq(lost, 1);
    lost = 0;
    begin(&users[0], TLS_SERVER);
    feed(&users[0], "GET / HTTP", 10);
    begin(&users[2], TLS_SERVER);
    feed(&users[2], "GET / HTTP", 10);
    tls_link_cancel(link_, &users[2].pending);
    fixture_turn(fixture);
    connect_link();
    feed(&users[1], "GET / HTTP", 10);
    work();
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(users[i].replies, 1);
        ck_assert_str_eq(users[i].text, "a message that is too long");
    }
    ck_assert_uint_eq(tls_handshakes_count(handshakes), 0);
}

START_TEST(a_lost_keeper_fails_handshakes_alone)
{
    start(REMOTE);
    for (unsigned i = 0; i < 100; i++) {
        begin_two();
        begin(&users[3], TLS_SERVER);
        lose();
        feed(&users[3], "x", 1); /* before the loss is known */
        fixture_turn(fixture);
        ck_assert_str_eq(users[3].text, "the keeper process has gone");
        expect_failed("the keeper process has gone");
    }
    stop();
}
END_TEST

START_TEST(a_replaced_keeper_fails_handshakes_alone)
{
    start(REMOTE);
    begin_two();
    connect_link();
    ck_assert_str_eq(users[0].text, "the keeper process was replaced");
    ck_assert_uint_eq(lost, 0);
    tls_link_cancel(link_, &users[1].pending);
    stop();
}
END_TEST

START_TEST(a_broken_rule_ends_the_link)
{
    static uint8_t part_of_flight[TLS_PART_MOST + 1];
    const struct tls_reply more = { .used = 3 }, few = { .used = 2 }, many = { .used = 4 };
    struct tls_reply parts = { .out = part_of_flight, .out_n = sizeof(part_of_flight) };
    static const char *const rules[] = { "a malformed message", "a malformed message",
        "a reply without a request", "a reply without a request",
        "more or fewer bytes taken than were given", "more or fewer bytes taken than were given",
        "parts of two replies", "a reply that is too long" };
    char line[160];
    uint32_t number;
    size_t n;

    start(REMOTE);
    number = begin_two();
    switch (_i) {
    case 0:
        ck_assert_int_eq(send(keeper, "garbage", 7, 0), 7);
        break;
    case 1: /* longer than any */
        memset(packet, 0, sizeof(packet));
        ck_assert_int_eq(send(keeper, packet, sizeof(packet), 0), (ssize_t)sizeof(packet));
        break;
    case 2: /* twice */
        reply_to(number, TLS_MORE, &more);
        fixture_turn(fixture);
        users[0].replies = 0;
        reply_to(number, TLS_MORE, &more);
        break;
    case 3: /* a reply to a handshake of which the keeper does not know yet */
        reply_to(users[1].pending.number, TLS_MORE, &more);
        break;
    case 4:
        reply_to(number, TLS_MORE, &few);
        break;
    case 5:
        reply_to(number, TLS_FAILED, &many);
        break;
    case 6:
        n = tls_message_write_part(number, TLS_MORE, &parts, 0, packet);
        ck_assert_int_eq(send(keeper, packet, n, 0), (ssize_t)n);
        reply_to(users[1].pending.number, TLS_MORE, &more);
        break;
    default:
        for (unsigned i = 0; i < TLS_FLIGHT_MOST / TLS_PART_MOST + 1; i++) {
            n = tls_message_write_part(number, TLS_MORE, &parts, 0, packet);
            ck_assert_int_eq(send(keeper, packet, n, 0), (ssize_t)n);
            fixture_turn(fixture);
        }
    }
    fixture_turn(fixture);
    snprintf(
        line, sizeof(line), "the keeper process has broken a rule of its link (%s)", rules[_i]);
    ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), line));
    expect_failed("the keeper process has broken a rule");
    stop();
}
END_TEST
#define RULES 8

START_TEST(another_descriptor_is_no_keeper)
{
    start(LOCAL);
    tls_link_destroy(link_);
    link_ = tls_link_create(fixture->loop, note_lost);
    tls_link_connect(link_, open("/dev/null", O_RDWR | O_CLOEXEC));
    tls_link_connect(link_, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), "the keeper process cannot be reached"));
    stop();
}
END_TEST

/* Without a free source the next keeper is asked for when one may be free. */
START_TEST(a_keeper_that_cannot_be_reached_is_asked_for_again)
{
    struct source *taken[8];
    unsigned n = 0;

    start(LOCAL);
    tls_link_destroy(link_);
    link_ = tls_link_create(fixture->loop, note_lost);
    lost = 0;
    while ((taken[n] = source_get(&fixture->loop->sources)) != NULL)
        n++;
    connect_link();
    while (n > 0)
        source_put(&fixture->loop->sources, taken[--n]);
    ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), "the keeper process cannot be reached"));
    fixture_pass(fixture, 999);
    ck_assert_uint_eq(lost, 0);
    fixture_pass(fixture, 1);
    ck_assert_uint_eq(lost, 1);
    connect_link();
    fixture_pass(fixture, 10000);
    ck_assert_uint_eq(lost, 1);
    begin(&users[0], TLS_SERVER);
    feed(&users[0], "x", 1);
    tls_link_cancel(link_, &users[0].pending);
    lost = 0;
    stop();
}
END_TEST

START_TEST(a_full_socket_is_waited_for)
{
    static uint8_t bytes[TLS_FEED_MOST];
    unsigned served = 0, cancelled = 0;
    struct tls_request request;

    start(REMOTE);
    for (unsigned i = 0; i < TLS_HANDSHAKES_MOST; i++) {
        begin(&users[i], TLS_SERVER);
        feed(&users[i], bytes, sizeof(bytes));
    }
    for (unsigned i = 0; i < TLS_HANDSHAKES_MOST; i += 2)
        tls_link_cancel(link_, &users[i].pending);
    for (unsigned i = 0; i < 10 * TLS_HANDSHAKES_MOST; i++) {
        fixture_turn(fixture);
        while (receive(&request)) {
            cancelled += request.kind == TLS_CANCEL;
            if (request.kind == TLS_CANCEL)
                continue;
            served++;
            ck_assert_uint_eq(request.in.n, sizeof(bytes));
            reply_to(request.number, TLS_FAILED, &(struct tls_reply) { .used = 1, .text = "no" });
            fixture_turn(fixture);
        }
    }
    for (unsigned i = 0; i < TLS_HANDSHAKES_MOST; i++)
        ck_assert_uint_eq(users[i].replies, i % 2);
    ck_assert_uint_gt(cancelled, 0);
    ck_assert_uint_eq(served, TLS_HANDSHAKES_MOST / 2 + cancelled);
    stop();
}
END_TEST

START_TEST(a_full_socket_of_a_lost_keeper_is_forgotten)
{
    static uint8_t bytes[TLS_FEED_MOST];

    start(REMOTE);
    for (unsigned i = 0; i < TLS_HANDSHAKES_MOST; i++) {
        begin(&users[i], TLS_SERVER);
        feed(&users[i], bytes, sizeof(bytes));
    }
    lose();
    fixture_turn(fixture);
    for (unsigned i = 0; i < TLS_HANDSHAKES_MOST; i++)
        ck_assert_str_eq(users[i].text, "the keeper process has gone");
    stop();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_handshake_comes_to_its_end, 0, LINKS);
    tcase_add_loop_test(tcase, cancelled_handshakes_are_forgotten, 0, LINKS);
    tcase_add_loop_test(tcase, more_than_the_most_are_refused, 0, LINKS);
    tcase_add_test(tcase, a_late_reply_is_ignored);
    tcase_add_test(tcase, a_flight_in_parts_comes_at_once);
    tcase_add_test(tcase, a_lost_keeper_fails_handshakes_alone);
    tcase_add_test(tcase, a_replaced_keeper_fails_handshakes_alone);
    tcase_add_loop_test(tcase, a_broken_rule_ends_the_link, 0, RULES);
    tcase_add_test(tcase, another_descriptor_is_no_keeper);
    tcase_add_test(tcase, a_keeper_that_cannot_be_reached_is_asked_for_again);
    tcase_add_test(tcase, a_full_socket_is_waited_for);
    tcase_add_test(tcase, a_full_socket_of_a_lost_keeper_is_forgotten);
}

TEST_MAIN("link", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Tickets behind the handshakes of clients, handed to a counting engine. */
#include "tls/linking.h"

#include <string.h>
#include <unistd.h>

#define AWAITS_MOST 64
#define AWAITS_MS 10000

struct tls_handshake {
    unsigned fed;
};

static unsigned alive, tickets; /* handshakes, and records of the bytes "ticket" */

static struct tls_engine *create_counting(struct tls_files *files, struct log *log)
{
    (void)files;
    (void)log;
    alive = tickets = 0;
    return calloc(1, 1);
}

static void destroy_counting(struct tls_engine *engine)
{
    ck_assert_uint_eq(alive, 0);
    free(engine);
}

static struct tls_handshake *begin_counting(
    struct tls_engine *engine, const struct tls_start *start)
{
    (void)engine;
    (void)start;
    alive++;
    return calloc(1, sizeof(struct tls_handshake));
}

/* Ends the handshake with the second feed. */
static enum tls_step feed_counting(
    struct tls_handshake *handshake, fb_bytes in, struct tls_reply *reply)
{
    reply->used = in.n;
    if (handshake->fed++ == 0)
        return TLS_MORE;
    reply->session =
        (struct tls_session) { .version = TLS_1_3, .plain_most = 1, .awaits_tickets = 1 };
    return TLS_DONE;
}

static bool ticket_counting(struct tls_handshake *handshake, fb_bytes record)
{
    (void)handshake;
    tickets += record.n == 6 && memcmp(record.p, "ticket", 6) == 0;
    return record.n == 6;
}

static void end_counting(struct tls_handshake *handshake)
{
    alive--;
    free(handshake);
}

static const struct tls_engine_ops counting = {
    .create = create_counting,
    .destroy = destroy_counting,
    .begin = begin_counting,
    .feed = feed_counting,
    .ticket = ticket_counting,
    .end = end_counting,
};

static void start_counting(int kind)
{
    engine_ops = &counting;
    start(kind);
}

static bool give(uint32_t number, const char *record)
{
    return tls_link_ticket(link_, number, (fb_bytes) { (const uint8_t *)record, strlen(record) });
}

/* Shakes hands; returns the number for tickets. */
static uint32_t shake(struct user *user)
{
    begin(user, TLS_CLIENT);
    feed(user, NULL, 0);
    work();
    ck_assert_int_eq(user->step, TLS_MORE);
    feed(user, "hello", 5);
    work();
    ck_assert_int_eq(user->step, TLS_DONE);
    ck_assert_uint_ne(user->session.awaits_tickets, 0);
    return user->session.awaits_tickets;
}

START_TEST(tickets_are_handed_on)
{
    uint32_t first, other;

    start_counting(_i);
    first = shake(&users[0]);
    other = shake(&users[1]);
    ck_assert_uint_ne(first, other);
    ck_assert(give(first, "ticket"));
    ck_assert(give(first, "ticket"));
    ck_assert(give(other, "ticket"));
    tls_link_forget(link_, first); /* in the turn of the tickets */
    ck_assert(!give(first, "ticket"));
    tls_link_forget(link_, first);
    tls_link_forget(link_, 0);
    work();
    ck_assert_uint_eq(tickets, 3);
    ck_assert_uint_eq(alive, 1);
    /* the engine wants no more, and the worker goes on */
    give(other, "no ticket");
    give(other, "ticket");
    work();
    ck_assert_uint_eq(tickets, 3);
    ck_assert_uint_eq(alive, 0);
    stop();
}
END_TEST

START_TEST(a_server_awaits_none)
{
    const struct tls_reply reply = {
        .used = 1,
        .session = { .version = TLS_1_3, .plain_most = 1, .awaits_tickets = 1 },
    };

    start_counting(REMOTE);
    begin(&users[0], TLS_SERVER);
    feed(&users[0], "1", 1);
    reply_to(users[0].pending.number, TLS_DONE, &reply);
    fixture_turn(fixture);
    ck_assert_str_eq(users[0].text, "the keeper process has broken a rule");
    ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), "(tickets for a server)"));
    stop();
}
END_TEST

START_TEST(the_oldest_are_forgotten)
{
    uint32_t first, second;

    start_counting(_i);
    first = shake(&users[0]);
    second = shake(&users[1]);
    for (unsigned i = 2; i <= AWAITS_MOST; i++)
        shake(&users[i]);
    work();
    ck_assert_uint_eq(alive, AWAITS_MOST);
    ck_assert(!give(first, "ticket"));
    ck_assert(give(second, "ticket"));
    fixture_pass(fixture, AWAITS_MS / 2);
    first = shake(&users[0]);
    fixture_pass(fixture, AWAITS_MS / 2);
    work();
    ck_assert_uint_eq(alive, 1);
    ck_assert(give(first, "ticket"));
    fixture_pass(fixture, AWAITS_MS / 2);
    work();
    ck_assert_uint_eq(alive, 0);
    ck_assert(!give(first, "ticket"));
    stop();
}
END_TEST

START_TEST(handshakes_have_the_places)
{
    start_counting(LOCAL);
    shake(&users[0]);
    for (unsigned i = 1; i <= TLS_HANDSHAKES_MOST - TLS_HANDSHAKES_MOST / 8; i++)
        begin(&users[i], TLS_SERVER);
    work();
    ck_assert_uint_eq(alive, 0);
    for (unsigned i = 1; i <= TLS_HANDSHAKES_MOST - TLS_HANDSHAKES_MOST / 8; i++) {
        ck_assert_uint_eq(users[i].replies, 0);
        tls_link_cancel(link_, &users[i].pending);
    }
    stop();
}
END_TEST

START_TEST(a_lost_keeper_has_forgotten)
{
    uint32_t number;

    start_counting(REMOTE);
    number = shake(&users[0]);
    tls_handshakes_end_all(handshakes);
    lose();
    ck_assert(give(number, "ticket")); /* before the loss is known */
    fixture_turn(fixture);
    ck_assert_uint_eq(lost, 1);
    ck_assert(!give(number, "ticket"));
    connect_link();
    ck_assert(!give(number, "ticket"));
    stop();
}
END_TEST

START_TEST(a_full_socket_ends_the_waiting)
{
    unsigned n = 0;
    uint32_t number;

    start_counting(REMOTE);
    number = shake(&users[0]);
    while (give(number, "ticket"))
        n++;
    ck_assert_uint_gt(n, 0);
    for (unsigned i = 0; i < n; i++)
        work();
    ck_assert_uint_eq(tickets, n);
    ck_assert_uint_eq(alive, 0);
    stop();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, tickets_are_handed_on, 0, LINKS);
    tcase_add_test(tcase, a_server_awaits_none);
    tcase_add_loop_test(tcase, the_oldest_are_forgotten, 0, LINKS);
    tcase_add_test(tcase, handshakes_have_the_places);
    tcase_add_test(tcase, a_lost_keeper_has_forgotten);
    tcase_add_test(tcase, a_full_socket_ends_the_waiting);
}

TEST_MAIN("link_tickets", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of handshakes under way, on an engine that never comes to an end. */
#include "support/test.h"
#include "tls/handshakes.h"

#include <string.h>

#define NUMBER (3u << TLS_PLACE_BITS | 17)

struct tls_handshake {
    int begun;
};

static unsigned begun, ended, fed;
static bool has_memory = true, waits;

static struct tls_handshake *begin_endless(struct tls_engine *engine, const struct tls_start *start)
{
    static struct tls_handshake one;

    (void)engine;
    (void)start;
    begun += has_memory;
    return has_memory ? &one : NULL;
}

static bool is_done; /* with the next feed, but for tickets */

static enum tls_step feed_endless(
    struct tls_handshake *handshake, fb_bytes in, struct tls_reply *reply)
{
    (void)handshake;
    fed++;
    if (waits)
        return TLS_LATER;
    reply->used = in.n;
    reply->session.awaits_tickets = is_done;
    return is_done ? TLS_DONE : TLS_MORE;
}

static bool take_ticket(struct tls_handshake *handshake, fb_bytes record)
{
    (void)handshake;
    return record.n == 1;
}

static void end_endless(struct tls_handshake *handshake)
{
    (void)handshake;
    ended++;
}

static const struct tls_engine_ops endless = {
    .begin = begin_endless, .feed = feed_endless, .ticket = take_ticket, .end = end_endless
};

static struct tls_handshakes *handshakes;
static enum tls_step step;
static struct tls_reply *reply;

static void start(void)
{
    begun = ended = fed = 0;
    waits = false;
    handshakes = tls_handshakes_create(&endless, NULL);
    ck_assert_ptr_nonnull(handshakes);
}

static int request(enum tls_request_kind kind, uint32_t number, uint32_t profile, size_t n)
{
    static const uint8_t bytes[TLS_FEED_MOST];
    const struct tls_request request = {
        .kind = kind,
        .number = number,
        .start = { .profile = profile },
        .in = { bytes, n },
    };

    return tls_handshakes_feed(handshakes, &request, 2, &step, &reply);
}

START_TEST(a_handshake_takes_so_many_bytes_and_no_more)
{
    start();
    ck_assert_int_eq(request(TLS_BEGIN, NUMBER, 1, 16384), 0);
    ck_assert_int_eq(request(TLS_FEED, NUMBER, 0, 16384), 0);
    ck_assert_int_eq(request(TLS_FEED, NUMBER, 0, 16384), 0);
    ck_assert_int_eq(request(TLS_FEED, NUMBER, 0, 16384), 0);
    ck_assert_int_eq(step, TLS_MORE);
    ck_assert_uint_eq(tls_handshakes_count(handshakes), 1);
    ck_assert_int_eq(request(TLS_FEED, NUMBER, 0, 1), 0);
    ck_assert_int_eq(step, TLS_FAILED);
    ck_assert_str_eq(reply->text, "the handshake is too long");
    ck_assert_uint_eq(reply->used, 0);
    ck_assert_uint_eq(tls_handshakes_count(handshakes), 0);
    ck_assert_uint_eq(ended, 1);
    tls_handshakes_destroy(handshakes);
}
END_TEST

START_TEST(a_request_that_does_not_fit_is_refused)
{
    start();
    ck_assert_int_eq(request(TLS_FEED, NUMBER, 0, 1), -1);
    ck_assert_int_eq(request(TLS_BEGIN, NUMBER, 2, 1), -1); /* no such profile */
    ck_assert_int_eq(request(TLS_BEGIN, NUMBER, 1, 1), 0);
    ck_assert_int_eq(request(TLS_BEGIN, NUMBER, 1, 1), -1);
    ck_assert_int_eq(request(TLS_BEGIN, NUMBER + (1u << TLS_PLACE_BITS), 1, 1), -1);
    ck_assert_int_eq(request(TLS_FEED, NUMBER + (1u << TLS_PLACE_BITS), 0, 1), -1);
    ck_assert_int_eq(request(TLS_CANCEL, NUMBER, 0, 0), -1);
    ck_assert_uint_eq(begun, 1);
    tls_handshakes_destroy(handshakes);
    ck_assert_uint_eq(ended, 1);
}
END_TEST

START_TEST(a_cancelled_handshake_ends_once)
{
    start();
    ck_assert_int_eq(request(TLS_BEGIN, NUMBER, 1, 1), 0);
    tls_handshakes_cancel(handshakes, NUMBER - (1u << TLS_PLACE_BITS));
    ck_assert_uint_eq(ended, 0);
    tls_handshakes_cancel(handshakes, NUMBER);
    tls_handshakes_cancel(handshakes, NUMBER);
    ck_assert_uint_eq(ended, 1);
    ck_assert_int_eq(request(TLS_BEGIN, NUMBER, 1, 1), 0);
    tls_handshakes_end_all(handshakes);
    ck_assert_uint_eq(ended, 2);
    tls_handshakes_destroy(handshakes);
}
END_TEST

static int ticket(uint32_t number, size_t n)
{
    const struct tls_request request = {
        .kind = TLS_TICKET, .number = number, .in = { (const uint8_t *)"xx", n }
    };

    return tls_handshakes_ticket(handshakes, &request);
}

START_TEST(tickets_come_behind_a_handshake)
{
    start();
    ck_assert_int_eq(ticket(NUMBER, 1), 0); /* forgotten */
    ck_assert_int_eq(request(TLS_BEGIN, NUMBER, 1, 1), 0);
    ck_assert_int_eq(ticket(NUMBER, 1), -1);
    is_done = true;
    ck_assert_int_eq(request(TLS_FEED, NUMBER, 0, 1), 0);
    is_done = false;
    ck_assert_int_eq(step, TLS_DONE);
    ck_assert_uint_eq(tls_handshakes_count(handshakes), 1);
    ck_assert_int_eq(request(TLS_FEED, NUMBER, 0, 1), -1);
    ck_assert_int_eq(request(TLS_BEGIN, NUMBER, 1, 1), -1);
    ck_assert_int_eq(ticket(NUMBER, 1), 0);
    ck_assert_uint_eq(ended, 0);
    ck_assert_int_eq(ticket(NUMBER + (1u << TLS_PLACE_BITS), 2), 0);
    ck_assert_uint_eq(ended, 0);
    ck_assert_int_eq(ticket(NUMBER, 2), 0);
    ck_assert_uint_eq(ended, 1);
    ck_assert_int_eq(ticket(NUMBER, 1), 0);
    ck_assert_int_eq(request(TLS_BEGIN, NUMBER, 1, 1), 0);
    tls_handshakes_destroy(handshakes);
}
END_TEST

START_TEST(a_lack_of_memory_fails_a_handshake)
{
    start();
    has_memory = false;
    ck_assert_int_eq(request(TLS_BEGIN, NUMBER, 1, 1), 0);
    ck_assert_int_eq(step, TLS_FAILED);
    ck_assert_str_eq(reply->text, "no memory for a handshake");
    ck_assert_uint_eq(tls_handshakes_count(handshakes), 0);
    has_memory = true;
    ck_assert_int_eq(request(TLS_BEGIN, NUMBER, 1, 1), 0);
    ck_assert_int_eq(step, TLS_MORE);
    tls_handshakes_destroy(handshakes);
}
END_TEST

START_TEST(a_handshake_that_waits_for_a_file_is_given_the_same_bytes)
{
    uint32_t number;
    unsigned from = 0;

    start();
    waits = true;
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(request(TLS_BEGIN, NUMBER + i, 1, i), 0);
        ck_assert_int_eq(step, TLS_LATER);
    }
    ck_assert_int_eq(request(TLS_FEED, NUMBER, 0, 1), -1); /* still without a reply */
    ck_assert(!tls_handshakes_resume(handshakes, &from, &number, &step, &reply));
    ck_assert_uint_eq(fed, 6);
    tls_handshakes_cancel(handshakes, NUMBER + 1);
    waits = false;
    from = 0;
    for (uint32_t i = 0; i < 3; i += 2) {
        ck_assert(tls_handshakes_resume(handshakes, &from, &number, &step, &reply));
        ck_assert_uint_eq(number, NUMBER + i);
        ck_assert_int_eq(step, TLS_MORE);
        ck_assert_uint_eq(reply->used, i);
    }
    ck_assert(!tls_handshakes_resume(handshakes, &from, &number, &step, &reply));
    ck_assert_uint_eq(fed, 8);
    ck_assert_int_eq(request(TLS_FEED, NUMBER, 0, 1), 0);
    waits = true;
    ck_assert_int_eq(request(TLS_FEED, NUMBER, 0, 1), 0);
    tls_handshakes_destroy(handshakes); /* with bytes that are kept */
    ck_assert_uint_eq(ended, 3);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_handshake_that_waits_for_a_file_is_given_the_same_bytes);
    tcase_add_test(tcase, a_handshake_takes_so_many_bytes_and_no_more);
    tcase_add_test(tcase, a_request_that_does_not_fit_is_refused);
    tcase_add_test(tcase, a_cancelled_handshake_ends_once);
    tcase_add_test(tcase, tickets_come_behind_a_handshake);
    tcase_add_test(tcase, a_lack_of_memory_fails_a_handshake);
}

TEST_MAIN("handshakes", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* How connections close: what is unsent leaves first, and what the peer still sends is discarded, so
 * that the kernel does not reset the connection under the reply. */
#include "net/bed.h"

#include <errno.h>
#include <string.h>

#define LINGERING_MS 5000

static size_t reply_and_close(struct owner *owner, fb_bytes in)
{
    conn_write(owner->conn, "reply", 5);
    conn_close(owner->conn);
    conn_write(owner->conn, "late", 4);
    conn_close(owner->conn);
    return in.n - owner->n;
}

START_TEST(without_pending_input_it_goes_at_once)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->data = reply_and_close;
    owner->n = 2; /* what is not consumed has been received all the same */
    fake_says(owner->socket, "request");
    bed_turn(bed);
    ck_assert_str_eq(bed_sent(owner), "reply");
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    ck_assert_uint_eq(owner->datas, 1);
    ck_assert(owner->socket->closed && !owner->socket->reset && !owner->socket->shut);
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

START_TEST(closing_waits_for_the_output)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->data = reply_and_close;
    fake_take(owner->socket, 0);
    fake_says(owner->socket, "request");
    bed_run(bed);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_uint_eq(owner->closings, 0);
        ck_assert_uint_eq(owner->socket->sent_n, i);
        fake_take(owner->socket, 1);
        bed_run(bed);
    }
    ck_assert_str_eq(bed_sent(owner), "reply");
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

START_TEST(closing_it_is_not_read)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);
    unsigned recvs;

    owner->data = reply_and_close;
    fake_take(owner->socket, 0);
    fake_says(owner->socket, "request");
    bed_run(bed);
    recvs = owner->socket->recvs;
    fake_says(owner->socket, "more");
    conn_resume(owner->conn);
    bed_run(bed);
    ck_assert_uint_eq(owner->socket->recvs, recvs);
    fake_take(owner->socket, SIZE_MAX);
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 1);
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    ck_assert(owner->socket->shut && !owner->socket->closed); /* there was more */
    net_fail_all(&bed->net, FB_DRAINED);
    ck_assert(owner->socket->closed);
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

START_TEST(closing_above_the_mark_is_not_writable)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    fake_take(owner->socket, 0);
    bed_write_pattern(owner, 100000);
    conn_close(owner->conn);
    net_flush(&bed->net);
    bed_run(bed);
    fake_take(owner->socket, 99999);
    bed_run(bed);
    ck_assert_uint_eq(owner->writables + owner->closings, 0);
    fake_take(owner->socket, 1);
    bed_run(bed);
    bed_check_pattern(owner, 100000);
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

/* Closed for its owner, and lingering. */
static struct owner *linger(struct bed *bed)
{
    struct owner *owner = bed_open(bed);

    timer_set(&bed->net.loop, &owner->conn->timer, 100);
    owner->data = reply_and_close;
    fake_says(owner->socket, "request");
    fake_says(owner->socket, "body");
    bed_run(bed);
    ck_assert_str_eq(bed_sent(owner), "reply");
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    ck_assert(owner->socket->shut && !owner->socket->closed);
    ck_assert_uint_eq(bed_count(bed, COUNTER_ACTIVE), 1);
    ck_assert_uint_eq(bed_count(bed, COUNTER_READING) + bed_count(bed, COUNTER_WRITING), 0);
    ck_assert_uint_eq(bed->released, 0);
    return owner;
}

static void check_gone(struct bed *bed, struct owner **owner)
{
    ck_assert((*owner)->socket->closed && !(*owner)->socket->reset);
    ck_assert_uint_eq((*owner)->expirations, 0); /* the timer is not the owner's any more */
    ck_assert_uint_eq((*owner)->datas, 1);
    ck_assert_uint_eq(bed->released, 1);
    bed_free(owner);
    bed_tear_down(bed);
}

START_TEST(lingering_ends_with_the_peers_end)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = linger(bed);
    static const uint8_t body[200 * 1024];

    for (int i = 0; i < 40; i++) {
        fake_say(owner->socket, body, sizeof(body));
        if (i % 2 == 0)
            bed_pass(bed, 100);
    }
    bed_run(bed);
    ck_assert_uint_eq(fake_unread(owner->socket), 0);
    ck_assert(!owner->socket->closed);
    fake_end(owner->socket);
    bed_run(bed);
    check_gone(bed, &owner);
}
END_TEST

START_TEST(lingering_ends_with_its_timeout)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = linger(bed);

    for (int i = 1; i <= 10; i++) {
        ck_assert(!owner->socket->closed);
        fake_says(owner->socket, "more"); /* which does not defer it */
        bed_pass(bed, LINGERING_MS / 10);
    }
    check_gone(bed, &owner);
}
END_TEST

START_TEST(lingering_ends_with_a_reset)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = linger(bed);

    fake_break(owner->socket, ECONNRESET);
    bed_run(bed);
    ck_assert_ptr_nonnull(strstr(bed_logged(bed), "recv() failed (104: "));
    check_gone(bed, &owner);
}
END_TEST

START_TEST(lingering_cannot_be_watched)
{
    struct bed *bed = bed_set_up(&fake_level, 1);
    struct owner *owner = bed_open(bed);

    owner->data = reply_and_close;
    fake_says(owner->socket, "request");
    fake_says(owner->socket, "body");
    fake_refuse_watching(ENOMEM);
    bed_run(bed);
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    fake_refuse_watching(0);
    check_gone(bed, &owner);
}
END_TEST

START_TEST(behind_the_end_nothing_can_be_pending)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);
    unsigned recvs;

    owner->eof = bed_stay;
    fake_end(owner->socket);
    bed_run(bed);
    recvs = owner->socket->recvs;
    conn_close(owner->conn);
    net_flush(&bed->net);
    ck_assert(owner->socket->closed);
    ck_assert_uint_eq(owner->socket->recvs, recvs);
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

START_TEST(an_abort_overtakes_the_close)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->data = reply_and_close;
    fake_take(owner->socket, 2);
    fake_says(owner->socket, "request");
    bed_run(bed);
    conn_fail(owner->conn, FB_ABORTED);
    net_flush(&bed->net);
    ck_assert_int_eq(owner->reason, FB_ABORTED);
    ck_assert_str_eq(bed_sent(owner), "re");
    ck_assert(owner->socket->reset);
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

START_TEST(a_peer_that_breaks_ends_the_closing)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->data = reply_and_close;
    fake_take(owner->socket, 2);
    fake_says(owner->socket, "request");
    bed_run(bed);
    fake_break_output(owner->socket, EPIPE);
    bed_run(bed);
    ck_assert_int_eq(owner->reason, FB_RESET);
    ck_assert_ptr_nonnull(strstr(bed_logged(bed), "send() failed (32: "));
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, without_pending_input_it_goes_at_once, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, closing_waits_for_the_output, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, closing_it_is_not_read, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, closing_above_the_mark_is_not_writable, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, lingering_ends_with_the_peers_end, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, lingering_ends_with_its_timeout, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, lingering_ends_with_a_reset, 0, BED_MECHANISMS);
    tcase_add_test(tcase, lingering_cannot_be_watched);
    tcase_add_loop_test(tcase, behind_the_end_nothing_can_be_pending, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, an_abort_overtakes_the_close, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, a_peer_that_breaks_ends_the_closing, 0, BED_MECHANISMS);
}

TEST_MAIN("conn_close", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a connection: from its creation to `closed`, and for what reasons it ends. */
#include "net/bed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

START_TEST(opened_comes_from_the_loop)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct owner *owner = bed_create(bed, NULL);

    ck_assert_uint_eq(owner->openings, 0);
    ck_assert_uint_eq(bed_count(bed, COUNTER_ACTIVE), 1);
    ck_assert_uint_eq(owner->conn->number, 1);
    bed_run(bed);
    ck_assert_uint_eq(owner->openings, 1);
    ck_assert_uint_eq(owner->socket->recvs, 0); /* nothing has arrived */

    fake_says(owner->socket, "hello");
    bed_run(bed);
    ck_assert_uint_eq(owner->datas, 1);
    ck_assert_str_eq(owner->last, "hello");
    fake_end(owner->socket);
    bed_run(bed);
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    ck_assert(owner->socket->closed && !owner->socket->reset);
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

START_TEST(what_was_not_opened_is_not_closed_for_its_owner)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct owner *early = bed_create(bed, NULL), *opened;

    fake_says(early->socket, "hello");
    net_fail_all(&bed->net, FB_DRAINED);
    ck_assert(early->socket->closed);
    bed_run(bed);
    ck_assert_uint_eq(early->openings + early->datas + early->closings, 0);
    ck_assert_uint_eq(bed->released, 1);

    opened = bed_open(bed);
    net_fail_all(&bed->net, FB_DRAINED);
    ck_assert_int_eq(opened->reason, FB_DRAINED);
    free(early);
    bed_free(&opened);
    bed_tear_down(bed);
}
END_TEST

START_TEST(slots_end_and_come_back)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct sockaddr unnamed = { .sa_family = AF_UNIX };
    struct owner *a = bed_open(bed), *b = bed_open(bed), *c;

    ck_assert_ptr_null(conn_create(&bed->net, 0, &unnamed, a->conn->ops, NULL));
    ck_assert_uint_eq(bed_count(bed, COUNTER_ACTIVE), 2);
    ck_assert_uint_eq(bed->released, 0);

    conn_fail(a->conn, FB_ABORTED);
    net_flush(&bed->net);
    ck_assert_uint_eq(bed->released, 1);
    c = bed_open(bed);
    ck_assert_uint_eq(c->conn->number, 3);
    /* the slot is a new connection's: nothing of the old one is left in it */
    fake_says(c->socket, "new");
    bed_run(bed);
    ck_assert_str_eq(c->last, "new");
    ck_assert_uint_eq(b->datas, 0);

    net_fail_all(&bed->net, FB_DRAINED);
    bed_free(&a);
    bed_free(&b);
    bed_free(&c);
    bed_tear_down(bed);
}
END_TEST

static const struct {
    int error;
    fb_reason reason;
} errors[] = {
    { ECONNRESET, FB_RESET },
    { EPIPE, FB_RESET },
    { ETIMEDOUT, FB_TIMED_OUT },
    { ENOMEM, FB_NO_MEMORY },
    { ENOBUFS, FB_NO_MEMORY },
    { EHOSTUNREACH, FB_IO_ERROR },
};

static void check_failed(struct bed *bed, struct owner *owner, unsigned i, const char *call)
{
    char expected[256];

    ck_assert_int_eq(owner->reason, errors[i].reason);
    ck_assert(owner->socket->closed && !owner->socket->reset);
    snprintf(expected, sizeof(expected),
        "t: [info] *%d %s failed (%d: %s), client: 192.0.2.1, server: bed\n", 1, call,
        errors[i].error, strerror(errors[i].error));
    ck_assert_str_eq(bed_logged(bed), expected);
}

START_TEST(an_error_of_recv_is_the_reason)
{
    for (int m = 0; m < BED_MECHANISMS; m++) {
        struct bed *bed = bed_set_up(bed_mechanisms[m], 1);
        struct owner *owner = bed_open(bed);

        fake_says(owner->socket, "before");
        fake_break(owner->socket, errors[_i].error);
        bed_run(bed);
        ck_assert_str_eq(owner->last, "before");
        check_failed(bed, owner, (unsigned)_i, "recv()");
        bed_free(&owner);
        bed_tear_down(bed);
    }
}
END_TEST

START_TEST(an_error_of_send_is_the_reason)
{
    for (int m = 0; m < BED_MECHANISMS; m++) {
        struct bed *bed = bed_set_up(bed_mechanisms[m], 1);
        struct owner *owner = bed_open(bed);

        owner->data = bed_echo;
        fake_break_output(owner->socket, errors[_i].error);
        fake_says(owner->socket, "request");
        bed_run(bed);
        check_failed(bed, owner, (unsigned)_i, "send()");
        bed_free(&owner);
        bed_tear_down(bed);
    }
}
END_TEST

START_TEST(an_error_while_output_waits_is_the_reason)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    owner->data = bed_echo;
    fake_take(owner->socket, 3);
    fake_says(owner->socket, "request");
    bed_run(bed);
    ck_assert_str_eq(bed_sent(owner), "req");
    ck_assert_uint_eq(owner->closings, 0);
    ck_assert_uint_eq(bed_count(bed, COUNTER_WRITING), 1);
    fake_break_output(owner->socket, EPIPE);
    bed_run(bed);
    check_failed(bed, owner, 1, "send()");
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

START_TEST(abort_resets_and_drops_the_output)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    conn_write(owner->conn, "never", 5);
    conn_fail(owner->conn, FB_ABORTED);
    conn_write(owner->conn, "after", 5);
    ck_assert_uint_eq(owner->closings, 0); /* no call runs a callback */
    net_flush(&bed->net);
    ck_assert_int_eq(owner->reason, FB_ABORTED);
    ck_assert_str_eq(bed_sent(owner), "");
    ck_assert(owner->socket->closed && owner->socket->reset);
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

static void close_now(struct owner *owner)
{
    conn_close(owner->conn);
}

START_TEST(opened_may_end_it)
{
    static const struct owner closing = { .opened = close_now };
    static const struct owner aborting = { .opened = bed_abort };
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct owner *a = bed_create(bed, &closing), *b = bed_create(bed, &aborting);

    fake_says(b->socket, "unheard");
    bed_run(bed);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert_int_eq(b->reason, FB_ABORTED);
    ck_assert_uint_eq(b->datas, 0);
    bed_free(&a);
    bed_free(&b);
    bed_tear_down(bed);
}
END_TEST

START_TEST(the_first_reason_counts)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_open(bed);

    conn_fail(owner->conn, FB_INPUT_LIMIT);
    conn_fail(owner->conn, FB_ABORTED);
    conn_close(owner->conn);
    net_flush(&bed->net);
    ck_assert_int_eq(owner->reason, FB_INPUT_LIMIT);
    ck_assert(!owner->socket->reset);
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

static void write_late(struct owner *owner)
{
    conn_write(owner->conn, "late", 4);
}

START_TEST(the_owner_has_a_timer)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct owner *owner = bed_open(bed), *never = bed_open(bed);

    owner->expired = write_late;
    timer_set(&bed->net.loop, &owner->conn->timer, 1000);
    timer_set(&bed->net.loop, &never->conn->timer, 1000);
    bed_pass(bed, 999);
    ck_assert_uint_eq(owner->expirations, 0);
    conn_fail(never->conn, FB_ABORTED);
    net_flush(&bed->net);
    bed_pass(bed, 1);
    ck_assert_uint_eq(owner->expirations, 1);
    ck_assert_str_eq(bed_sent(owner), "late"); /* settled after this callback too */
    ck_assert_uint_eq(never->expirations, 0);

    net_fail_all(&bed->net, FB_DRAINED);
    bed_free(&owner);
    bed_free(&never);
    bed_tear_down(bed);
}
END_TEST

START_TEST(a_refused_watch_ends_the_connection)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *owner = bed_create(bed, NULL);

    fake_refuse_watching(EMFILE);
    bed_run(bed);
    ck_assert_int_eq(owner->reason, FB_NO_MEMORY);
    ck_assert_str_eq(bed_logged(bed),
        "t: [alert] *1 the connection cannot be watched (24: Too many open files), "
        "client: 192.0.2.1, server: bed\n");
    bed_free(&owner);

    fake_refuse_watching(0);
    owner = bed_open(bed);
    fake_refuse_watching(ENOMEM);
    fake_take(owner->socket, 0);
    conn_write(owner->conn, "output that waits", 17);
    net_flush(&bed->net);
    ck_assert_int_eq(owner->reason, FB_NO_MEMORY);
    fake_refuse_watching(0);
    bed_free(&owner);
    bed_tear_down(bed);
}
END_TEST

START_TEST(gauges_tell_what_connections_do)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 3);
    struct owner *reading = bed_open(bed), *writing = bed_open(bed), *waiting = bed_open(bed);

    ck_assert_uint_eq(bed_count(bed, COUNTER_ACTIVE), 3);
    ck_assert_uint_eq(bed_count(bed, COUNTER_READING) + bed_count(bed, COUNTER_WRITING), 0);
    reading->data = bed_leave;
    fake_says(reading->socket, "half a request");
    fake_take(writing->socket, 0);
    writing->data = bed_echo;
    fake_says(writing->socket, "request");
    bed_run(bed);
    ck_assert_uint_eq(bed_count(bed, COUNTER_READING), 1);
    ck_assert_uint_eq(bed_count(bed, COUNTER_WRITING), 1);

    reading->data = NULL;
    fake_says(reading->socket, "the rest");
    fake_take(writing->socket, SIZE_MAX);
    bed_run(bed);
    ck_assert_uint_eq(bed_count(bed, COUNTER_READING) + bed_count(bed, COUNTER_WRITING), 0);
    ck_assert_uint_eq(bed_count(bed, COUNTER_ACTIVE), 3);

    net_fail_all(&bed->net, FB_DRAINED);
    bed_free(&reading);
    bed_free(&writing);
    bed_free(&waiting);
    bed_tear_down(bed);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, opened_comes_from_the_loop, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, what_was_not_opened_is_not_closed_for_its_owner, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, slots_end_and_come_back, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, an_error_of_recv_is_the_reason, 0, (int)countof(errors));
    tcase_add_loop_test(tcase, an_error_of_send_is_the_reason, 0, (int)countof(errors));
    tcase_add_loop_test(tcase, an_error_while_output_waits_is_the_reason, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, abort_resets_and_drops_the_output, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, opened_may_end_it, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, the_first_reason_counts, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, the_owner_has_a_timer, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, a_refused_watch_ends_the_connection, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, gauges_tell_what_connections_do, 0, BED_MECHANISMS);
}

TEST_MAIN("conn", add_tests)

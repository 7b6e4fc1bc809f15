/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients, bytes and causes of ends in the statistics. */
#include "sdk/scripted_conn.h"
#include "session/end.h"

#include <string.h>

/* Returns the numbers of the only `listen`. */
static struct stats_totals totals_of(fb_test *test)
{
    struct stats_totals totals;

    stats_read(zone_memory(test->cycle->stream.stats), 1, &totals, sizeof(totals));
    return totals;
}

static void expect(fb_test *test, uint64_t active, uint64_t received, uint64_t sent)
{
    struct stats_totals totals;

    fb_test_run(test);
    totals = totals_of(test);
    ck_assert_uint_eq(totals.active, active);
    ck_assert_uint_eq(totals.received, received);
    ck_assert_uint_eq(totals.sent, sent);
}

static size_t answer(struct scripted_conn *script, fb_bytes in)
{
    fb_write(script->conn, "answer", 6);
    return in.n;
}

static size_t leave(struct scripted_conn *script, fb_bytes in)
{
    (void)script;
    (void)in;
    return 0;
}

START_TEST(bytes_are_counted_as_they_come)
{
    fb_test *test = scripted_start();
    struct scripted_conn one = { .data = answer }, two = { .data = leave };
    fb_test_peer *peer = scripted_conn_open(test, &one);

    fb_test_says(peer, "question");
    expect(test, 1, 8, 6);
    fb_test_says(peer, "?");
    expect(test, 1, 9, 12);
    peer = scripted_conn_open(test, &two);
    fb_test_says(peer, "kept");
    fb_test_says(peer, "and more");
    expect(test, 2, 21, 12);
    fb_abort(one.conn);
    fb_abort(two.conn);
    scripted_settle(test);
    expect(test, 0, 21, 12);
    ck_assert_uint_eq(totals_of(test).ended[SESSION_END_ABORTED], 2);
    scripted_finish(&test);
}
END_TEST

START_TEST(ends_have_their_causes)
{
    fb_test *test = scripted_start_with("idle_timeout 5s;");
    struct scripted_conn scripts[4] = { 0 };
    fb_test_peer *peers[4];
    struct stats_totals totals;

    for (int i = 0; i < 4; i++)
        peers[i] = scripted_conn_open(test, &scripts[i]);
    fb_close(scripts[0].conn);
    fb_test_shut(peers[1]);
    fb_test_reset(peers[2]);
    fb_test_pass(test, 5000);
    totals = totals_of(test);
    ck_assert_uint_eq(totals.accepts, 4);
    ck_assert_uint_eq(totals.active, 0);
    ck_assert_uint_eq(totals.ended[SESSION_END_FINISHED], 2);
    ck_assert_uint_eq(totals.ended[SESSION_END_CLIENT_RESET], 1);
    ck_assert_uint_eq(totals.ended[SESSION_END_TIMEOUT], 1);
    ck_assert_uint_eq(totals.lengths.ms, 5000);
    ck_assert_uint_eq(totals.lengths.n[0], 3);
    ck_assert_uint_eq(totals.lengths.n[13], 1); /* below 8,192 ms */
    scripted_finish(&test);
}
END_TEST

/* Bytes of a handshake in the midst of a session are not the session's. */
START_TEST(handshakes_are_left_out)
{
    struct scripted_conn script = { 0 };
    fb_test_peer *peer;
    fb_test *test;

    if (!fb_test_has_tls())
        return;
    test =
        scripted_start_client("ssl_certificate a.crt; ssl_certificate_key a.key;", &script, &peer);
    script.data = answer;
    fb_test_says(peer, "question");
    expect(test, 1, 8, 6);
    fb_write(script.conn, "ready", 5);
    ck_assert_int_eq(fb_start_tls(script.conn, NULL), 0);
    scripted_settle(test);
    if (_i == 0)
        ck_assert_int_eq(fb_test_tls(peer, ""), 0);
    else
        fb_test_says(peer, "no handshake");
    expect(test, _i == 0, 8, 11);
    if (_i == 0) {
        fb_test_says(peer, "more");
        expect(test, 1, 12, 17);
    }
    scripted_finish(&test);
}
END_TEST

/* Walks over all samples; returns the one of a family with the value of the last label, or of the
 * only one. */
static fb_sample sample_of(fb_test *test, const char *family, const char *last)
{
    const fb_metrics *metrics = fb_interface(fb_test_worker(test), "metrics", 1);
    fb_sample sample = { .size = sizeof(sample) }, found = { .name = NULL };
    fb_sample_cursor cursor = { 0 };
    const char *before = NULL;

    while (metrics->next(fb_test_worker(test), &cursor, &sample) == 1) {
        ck_assert(before == NULL || before == sample.name || strcmp(before, sample.name) != 0);
        before = sample.name;
        if (strcmp(sample.name, family) == 0 &&
            (last == NULL || strcmp(sample.labels[sample.label_n - 1].value, last) == 0))
            found = sample;
    }
    ck_assert_uint_eq(cursor.family + cursor.entry + cursor.part, 0);
    ck_assert_msg(found.name != NULL, "there is no %s", family);
    return found;
}

START_TEST(samples_are_the_same_numbers)
{
    fb_test *test = scripted_start();
    struct scripted_conn one = { .data = answer }, two = { .data = answer };
    fb_sample sample;

    fb_test_says(scripted_conn_open(test, &one), "question");
    scripted_conn_open(test, &two);
    expect(test, 2, 8, 6);
    fb_close(one.conn);
    scripted_settle(test);
    fb_test_pass(test, 3);
    ck_assert_int_eq(sample_of(test, "forkbeard_accepts", NULL).value, 2);
    sample = sample_of(test, "forkbeard_listen_received", "scripted");
    ck_assert_int_eq(sample.value, 8);
    ck_assert_int_eq(sample.kind, FB_SAMPLE_COUNTER);
    ck_assert_str_eq(sample.unit, "bytes");
    ck_assert_uint_eq(sample.label_n, 3);
    ck_assert_str_eq(sample.labels[0].name, "listen");
    ck_assert_int_eq(sample_of(test, "forkbeard_listen_active", NULL).value, 1);
    sample = sample_of(test, "forkbeard_listen_ended", "finished");
    ck_assert_int_eq(sample.value, 1);
    ck_assert_str_eq(sample.labels[sample.label_n - 1].name, "cause");
    sample = sample_of(test, "forkbeard_listen_session", NULL);
    ck_assert_int_eq(sample.kind, FB_SAMPLE_HISTOGRAM);
    ck_assert_uint_eq(sample.buckets[0], 1);
    ck_assert_uint_eq(sample.sum, 0);
    sample = sample_of(test, "forkbeard_worker_connections", NULL);
    ck_assert_int_eq(sample.value, 1);
    ck_assert_str_eq(sample.labels[0].name, "generation");
    scripted_finish(&test);
}
END_TEST

/* A walk by rows has the samples of a walk by samples, and each row one thing. */
START_TEST(rows_have_all_samples)
{
    fb_test *test = scripted_start();
    const fb_metrics *metrics = fb_interface(fb_test_worker(test), "metrics", 1);
    struct scripted_conn one = { .data = answer };
    fb_sample sample = { .size = sizeof(sample) }, row[FB_ROW_MAX];
    fb_sample_cursor cursor = { 0 };
    unsigned sample_n = 0, row_n = 0;
    uint32_t n;

    fb_test_says(scripted_conn_open(test, &one), "question");
    fb_close(one.conn);
    scripted_settle(test);
    while (metrics->next(fb_test_worker(test), &cursor, &sample) == 1)
        sample_n++;
    row[0].size = sizeof(row[0]);
    while ((n = metrics->next_row(fb_test_worker(test), &cursor, row)) > 0) {
        row_n++;
        ck_assert_uint_le(n, FB_ROW_MAX);
        sample_n -= n;
        for (uint32_t i = 0; i < n; i++) {
            ck_assert_ptr_eq(row[i].thing, row[0].thing);
            ck_assert_uint_eq(row[i].key_n, row[0].key_n);
            for (uint32_t k = 0; k < row[i].key_n; k++)
                ck_assert_str_eq(row[i].labels[k].value, row[0].labels[k].value);
        }
    }
    ck_assert_uint_eq(sample_n, 0);
    ck_assert_uint_ge(row_n, 3); /* the daemon, a worker, a listen */
    ck_assert_uint_eq(cursor.family + cursor.entry + cursor.part, 0);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, bytes_are_counted_as_they_come);
    tcase_add_test(tcase, ends_have_their_causes);
    tcase_add_test(tcase, samples_are_the_same_numbers);
    tcase_add_test(tcase, rows_have_all_samples);
    tcase_add_loop_test(tcase, handshakes_are_left_out, 0, 2);
}

TEST_MAIN("sdk_statistics", add_tests)

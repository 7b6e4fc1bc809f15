/* SPDX-License-Identifier: BSD-2-Clause */
/* Names, with the kit's servers of names: conversations with a protocol that resolves, and the end
 * of owners and workers. */
#include "support/test.h"

#include <errno.h>
#include <forkbeard/test.h>
#include <stdio.h>
#include <string.h>

extern const fb_protocol fb_protocol_resolves;

static const fb_test_step found[] = {
    FB_TEST_NAME("a.test 60 A 192.0.2.1"),
    FB_TEST_NAME("a.test 60 A 192.0.2.2"),
    FB_TEST_NAME("a.test 60 AAAA 2001:db8::1"),
    FB_TEST_NAME("b.test 60 CNAME a.test"),
    FB_TEST_NAME("_x._tcp.test 60 SRV 20 5 80 b.test"),
    FB_TEST_NAME("_x._tcp.test 60 SRV 10 5 81 a.test"),
    FB_TEST_NAME("1.2.0.192.in-addr.arpa 60 PTR a.test"),
    FB_TEST_SAY("pA a.test\n"),
    FB_TEST_EXPECT("found 192.0.2.1:80 192.0.2.2:80 \n"),
    FB_TEST_SAY("AAAA b.test\n"),
    FB_TEST_EXPECT("found as a.test [2001:db8::1]:0 \n"),
    FB_TEST_SAY("ANY a.test\n"),
    FB_TEST_EXPECT("found 192.0.2.1:0 192.0.2.2:0 [2001:db8::1]:0 \n"),
    FB_TEST_SAY("SRV _x._tcp.test\n"),
    FB_TEST_EXPECT("found 10/5/81/a.test 20/5/80/b.test \n"),
    FB_TEST_SAY("PTR 192.0.2.1\n"),
    FB_TEST_EXPECT("found as 1.2.0.192.in-addr.arpa a.test \n"),
    FB_TEST_SAY("A c.test\n"),
    FB_TEST_EXPECT("absent \n"),
    FB_TEST_SAY("SRV a.test\n"),
    FB_TEST_EXPECT("no data \n"),
    FB_TEST_SHUT(),
    FB_TEST_EXPECT_CLOSED(),
};

/* A finding holds for the given time, by the worker's clock. */
static const fb_test_step kept[] = {
    FB_TEST_NAME("a.test 60 A 192.0.2.1"),
    FB_TEST_SAY("tA a.test\n"),
    FB_TEST_EXPECT("found 192.0.2.1:0 (60) \n"),
    FB_TEST_NAME("a.test 90 A 192.0.2.2"),
    FB_TEST_PASS(55500),
    FB_TEST_SAY("tA a.test\n"),
    FB_TEST_EXPECT("found 192.0.2.1:0 (5) \n"),
    FB_TEST_PASS(4600),
    FB_TEST_SAY("tA a.test\n"),
    FB_TEST_EXPECT("found 192.0.2.1:0 (60) 192.0.2.2:0 (90) \n"),
    FB_TEST_SAY("A b.test\n"),
    FB_TEST_EXPECT("absent \n"),
    FB_TEST_NAME("b.test 60 A 192.0.2.3"),
    FB_TEST_PASS(9000),
    FB_TEST_SAY("A b.test\n"),
    FB_TEST_EXPECT("absent \n"),
    FB_TEST_PASS(1100),
    FB_TEST_SAY("A b.test\n"),
    FB_TEST_EXPECT("found 192.0.2.3:0 \n"),
};

static const fb_test_step late[] = {
    FB_TEST_NAME("a.test 60 A 192.0.2.1"),
    FB_TEST_NAMES(FB_TEST_SILENT),
    FB_TEST_SAY("A a.test\n"),
    FB_TEST_PASS(29000),
    FB_TEST_SAY("sA a.test\n"),
    FB_TEST_PASS(60),
    FB_TEST_EXPECT("timed out \n"),
    FB_TEST_PASS(1000),
    FB_TEST_EXPECT("timed out \n"),
    FB_TEST_SAY("A a.test\ncA b.test\n"),
    FB_TEST_EXPECT("cancelled\n"),
    FB_TEST_NAMES(FB_TEST_ACCEPTS),
    FB_TEST_EXPECT("found 192.0.2.1:0 \n"),
    FB_TEST_NAMES(FB_TEST_REFUSES),
    FB_TEST_SAY("A c.test\n"),
    FB_TEST_EXPECT("failed \n"),
};

/* More addresses than a datagram has room for. */
START_TEST(long_answers)
{
    fb_test *test = fb_test_start(&fb_protocol_resolves, "resolves; resolver 10.0.0.1 [::1]:54;");
    fb_test_peer *peer = fb_test_connect(test);
    char record[64], expected[4096] = "found";

    for (int i = 1; i <= 60; i++) {
        snprintf(record, sizeof(record), "a.test 60 A 192.0.2.%d", i);
        fb_test_name(test, record);
        snprintf(expected + strlen(expected), 32, " 192.0.2.%d:0", i);
    }
    strcat(expected, " \n");
    fb_test_says(peer, "A a.test\n");
    ck_assert_uint_eq(fb_test_heard(peer).n, strlen(expected));
    ck_assert_mem_eq(fb_test_heard(peer).p, expected, strlen(expected));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Many at once, of which a part is with the servers, and not all can be kept. */
START_TEST(many_names)
{
    fb_test *test = fb_test_start(&fb_protocol_resolves, "resolves;");
    fb_test_peer *peer = fb_test_connect(test);
    char text[64];

    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof(text), "A n%d.test\n", i);
        fb_test_says(peer, text);
    }
    ck_assert_uint_eq(fb_test_heard(peer).n, 5000 * strlen("absent \n"));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static unsigned ended;

static void note_end(fb_worker *worker, const fb_names *names, void *arg)
{
    ck_assert_ptr_eq(arg, &ended);
    ck_assert_int_eq(names->outcome, FB_NAME_ENDED);
    ck_assert_uint_eq(names->n, 0);
    ck_assert_str_eq(names->name, "a.test");
    ck_assert_ptr_null(fb_resolve(worker, "b.test", FB_NAME_A, NULL, note_end, arg));
    ck_assert_int_eq(errno, ECANCELED);
    ended++;
}

/* The worker's hear of the end, the connections' do not. */
START_TEST(the_worker_ends)
{
    fb_test *test = fb_test_start(&fb_protocol_resolves, "resolves;");
    fb_test_peer *peer = fb_test_connect(test);

    ended = 0;
    fb_test_names(test, FB_TEST_SILENT);
    fb_test_says(peer, "A a.test\n");
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_nonnull(
            fb_resolve(fb_test_worker(test), "a.test", FB_NAME_ADDRESSES, NULL, note_end, &ended));
    fb_test_run(test);
    ck_assert_int_eq(fb_test_end(&test), 0);
    ck_assert_uint_eq(ended, 3);
}
END_TEST

START_TEST(what_cannot_be_asked_for)
{
    fb_test *test = fb_test_start(&fb_protocol_resolves, "resolves;");
    fb_worker *worker = fb_test_worker(test);
    struct sockaddr wrong = { .sa_family = AF_UNSPEC };
    fb_resolve_options options = { .size = sizeof(options), .address = &wrong };

    ck_assert_ptr_null(fb_resolve(worker, "a.test", (fb_name_type)2, NULL, note_end, &ended));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(fb_resolve(worker, NULL, FB_NAME_A, NULL, note_end, &ended));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(fb_resolve(worker, "a.test", FB_NAME_PTR, &options, note_end, &ended));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void converse(const fb_test_step *script, size_t n)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "resolves;",
        .excuse = "", /* "no memory" in the place of what was found */
    };

    ck_assert_int_eq(fb_test_converse_with(&fb_protocol_resolves, &options, script, n), 0);
}

START_TEST(conversations)
{
    converse(FB_TEST_SCRIPT(found));
    converse(FB_TEST_SCRIPT(kept));
    converse(FB_TEST_SCRIPT(late));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, conversations);
    tcase_add_test(tcase, long_answers);
    tcase_add_test(tcase, many_names);
    tcase_add_test(tcase, the_worker_ends);
    tcase_add_test(tcase, what_cannot_be_asked_for);
}

TEST_MAIN("names", add_tests)

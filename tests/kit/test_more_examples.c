/* SPDX-License-Identifier: BSD-2-Clause */
/* The examples with connections to servers of the clients' choice, or with shared state, in
 * conversations. */
#include "support/test.h"

#include <forkbeard/test.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const fb_protocol fb_protocol_balance, fb_protocol_chat, fb_protocol_dbpool,
    fb_protocol_knock, fb_protocol_search, fb_protocol_tail;

/* Balance */

#define ONE "10.0.0.1:80"
#define OTHER "10.0.0.2:80"

START_TEST(balance_goes_on_with_the_next)
{
    static const fb_test_step script[] = {
        FB_TEST_REPLY(ONE, FB_TEST_REFUSES),
        FB_TEST_SAY("hello"),
        FB_TEST_SERVER(1, OTHER),
        FB_TEST_EXPECT("hello"),
        FB_TEST_SAY("answer"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("answer"),
        FB_TEST_REPLY(OTHER, FB_TEST_REFUSES),
        FB_TEST_PEER(2),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(fb_test_converse(&fb_protocol_balance,
                         "balance " ONE " " OTHER "; balance_check 1h; balance_sticky on;",
                         FB_TEST_SCRIPT(script)),
        0);
}
END_TEST

/* Connects twenty clients, and counts the clients of each server. */
static void balance_count(fb_test *test, fb_test_server *const servers[], unsigned got[2])
{
    for (int i = 0; i < 20; i++) {
        fb_test_peer *client = fb_test_connect(test), *peer;

        fb_test_run(test);
        for (int k = 0; k < 2; k++) {
            while ((peer = fb_test_accept(servers[k])) != NULL) {
                if (fb_test_is_closed(peer))
                    continue; /* a check */
                got[k]++;
                fb_test_reset(peer);
            }
        }
        fb_test_reset(client);
    }
}

START_TEST(balance_leaves_out_who_does_not_answer)
{
    fb_test *test =
        fb_test_start(&fb_protocol_balance, "balance " ONE " " OTHER "; balance_check 5s;");
    fb_test_server *const servers[] = {
        fb_test_serve(test, ONE, FB_TEST_SILENT),
        fb_test_serve(test, OTHER, FB_TEST_ACCEPTS),
    };
    unsigned got[2] = { 0, 0 };

    ck_assert_ptr_nonnull(
        strstr(fb_test_logged(test), "2 servers are balanced, the first is " ONE));
    fb_test_pass(test, 2001); /* the first check, and its time-out */
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "does not answer: Connection timed out"));
    balance_count(test, servers, got);
    ck_assert_uint_eq(got[1], 20);
    fb_test_serve(test, ONE, FB_TEST_ACCEPTS);
    fb_test_pass(test, 5000);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "the server answers again"));
    balance_count(test, servers, got);
    ck_assert_uint_gt(got[0], 0);
    ck_assert_uint_gt(got[1], 20);
    ck_assert_uint_eq(got[0] + got[1], 40);
    fb_test_drain(test, 0);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Chat */

START_TEST(chat_reaches_all_or_one)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("ann\n"),
        FB_TEST_PASS(50),
        FB_TEST_PEER(1),
        FB_TEST_SAY("ann\n"),
        FB_TEST_EXPECT("- choose another name\n"),
        FB_TEST_PASS(50),
        FB_TEST_SAY("bob\n"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("bob comes\n"),
        FB_TEST_PEER(2),
        FB_TEST_SAY("cat\n"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("cat comes\n"),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT("cat comes\n"),
        FB_TEST_PASS(50),
        FB_TEST_SAY("hello\033all\r\n@ann but not\n@dan nobody\n"),
        FB_TEST_PASS(150),
        FB_TEST_EXPECT("- not told\n"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("bob: hello?all\nbob to you: but not\n"),
        FB_TEST_PEER(3),
        FB_TEST_PASS(30000), /* without a name */
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(2),
        FB_TEST_EXPECT("bob: hello?all\n"),
        FB_TEST_SAY("/who\n"),
        FB_TEST_EXPECT_ANY(18),
        FB_TEST_EXPECT("- worker 1 of 1, which knows of 0 others\n"),
        FB_TEST_SHUT(),
        FB_TEST_PASS(50),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("cat goes\n"),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT("cat goes\n"),
        FB_TEST_DRAIN(0),
        FB_TEST_EXPECT("- come again\n"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("- come again\n"),
        FB_TEST_EXPECT_CLOSED(),
    };
    const fb_test_options options = { .size = sizeof(options), .server = "chat;", .excuse = "" };

    ck_assert_int_eq(fb_test_converse_with(&fb_protocol_chat, &options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* Dbpool */

#define DATABASE "10.0.0.1:5432"
#define STARTUP "\0\0\0\21\0\3\0\0user\0me\0\0"
#define GREETING "R\0\0\0\10\0\0\0\0K\0\0\0\14\0\0\0\1\0\0\0\2Z\0\0\0\5I"
#define QUERY "Q\0\0\0\15select 1\0"
#define ANSWER(state) "C\0\0\0\15SELECT 1\0Z\0\0\0\5" state
#define PARSE "P\0\0\0\x09\0;\0\0\0"
#define SYNC "S\0\0\0\4"
#define NO_SERVER "E\0\0\0\46SFATAL\0C08006\0Mno server is left\0\0"

/* Steps of a first client, for whom the pool connects with the database. */
#define GREETED                                                                                    \
    FB_TEST_SAY(STARTUP), FB_TEST_SERVER(1, DATABASE), FB_TEST_EXPECT(STARTUP),                    \
        FB_TEST_SAY(GREETING), FB_TEST_PEER(0), FB_TEST_EXPECT(GREETING)

static int dbpool(const fb_test_step *script, size_t n)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "dbpool " DATABASE "; dbpool_connections 1; dbpool_wait 5s;",
        .excuse = "E",
    };

    return fb_test_converse_with(&fb_protocol_dbpool, &options, script, n);
}

START_TEST(dbpool_shares_a_connection)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("\0\0\0\10\4\322\26\57"), /* SSLRequest */
        FB_TEST_EXPECT("N"),
        GREETED,
        FB_TEST_SAY(QUERY),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT(QUERY),
        FB_TEST_PEER(2),
        FB_TEST_SAY(STARTUP), /* waits */
        FB_TEST_PEER(1),
        FB_TEST_SAY(ANSWER("I")),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT(ANSWER("I")),
        FB_TEST_PEER(2),
        FB_TEST_EXPECT(GREETING),
        FB_TEST_SAY(QUERY QUERY),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT(QUERY QUERY),
        FB_TEST_SAY(ANSWER("I")),
        FB_TEST_SAY(ANSWER("I")),
        FB_TEST_PEER(2),
        FB_TEST_EXPECT(ANSWER("I") ANSWER("I")),
        FB_TEST_SAY("X\0\0\0\4"),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(dbpool(FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* A client that sends more before the answer keeps the connection until Sync. */
START_TEST(dbpool_waits_for_sync)
{
    static const fb_test_step script[] = {
        GREETED,
        FB_TEST_SAY(QUERY PARSE),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT(QUERY PARSE),
        FB_TEST_PEER(2),
        FB_TEST_SAY(STARTUP QUERY), /* waits */
        FB_TEST_PEER(1),
        FB_TEST_SAY(ANSWER("I")),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT(ANSWER("I")),
        FB_TEST_SAY(SYNC),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT(SYNC),
        FB_TEST_SAY("1\0\0\0\4Z\0\0\0\5I"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("1\0\0\0\4Z\0\0\0\5I"),
        FB_TEST_PEER(2),
        FB_TEST_EXPECT(GREETING),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT(QUERY),
    };

    ck_assert_int_eq(dbpool(FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* A client in a transaction keeps the connection, and waiting clients do not wait for ever. */
START_TEST(dbpool_keeps_transactions_whole)
{
    static const fb_test_step script[] = {
        GREETED,
        FB_TEST_SAY(QUERY),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT(QUERY),
        FB_TEST_SAY(ANSWER("T")),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT(ANSWER("T")),
        FB_TEST_PEER(2),
        FB_TEST_SAY(STARTUP),
        FB_TEST_PASS(5000),
        FB_TEST_EXPECT(NO_SERVER),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(1),
        FB_TEST_SHUT(),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT(NO_SERVER),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(dbpool(FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(dbpool_does_not_know_passwords)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY(STARTUP),
        FB_TEST_SERVER(1, DATABASE),
        FB_TEST_EXPECT(STARTUP),
        FB_TEST_SAY("R\0\0\0\10\0\0\0\3"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT(NO_SERVER),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_REPLY(DATABASE, FB_TEST_REFUSES),
        FB_TEST_PEER(2),
        FB_TEST_SAY(STARTUP),
        FB_TEST_EXPECT(NO_SERVER),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(dbpool(FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* Knock */

/* Known names, unknown names, and a name tried in place of a server without an answer. */
START_TEST(knock_tells_who_answers)
{
    static const fb_test_step script[] = {
        FB_TEST_NAME("one.test 60 A 10.0.0.1"),
        FB_TEST_NAME("other.test 60 A 10.0.0.2"),
        FB_TEST_REPLY(OTHER, FB_TEST_REFUSES),
        FB_TEST_SAY("\10one.test"),
        FB_TEST_SERVER(1, ONE),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("\224\0"
                       "10.0.0.1:80: answers"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(2),
        FB_TEST_NAMES(FB_TEST_SILENT),
        FB_TEST_SAY("\11none.test\12other.test"),
        FB_TEST_NAMES(FB_TEST_ACCEPTS),
        FB_TEST_EXPECT("\237\0"
                       "10.0.0.2:80: Connection refused"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(3),
        FB_TEST_SAY("\3a\0b"),
        FB_TEST_EXPECT("\237\0"
                       "error: no name can be looked up"),
        FB_TEST_EXPECT_CLOSED(),
    };
    static const fb_test_options options = {
        .size = sizeof(options), .server = "knock 80;", .excuse = ""
    };

    ck_assert_int_eq(
        fb_test_converse_with(&fb_protocol_knock, &options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* Search and tail */

/* A directory with a file, and a worker that reads the file. */
struct tailed {
    char directory[32], path[64], server[128];
    fb_test *test;
    fb_test_peer *peer;
};

static void append(const struct tailed *tailed, const char *mode, const char *text)
{
    FILE *file = fopen(tailed->path, mode);

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void tail_start(struct tailed *tailed, const fb_protocol *protocol, const char *directives)
{
    strcpy(tailed->directory, "/tmp/fb_tail.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(tailed->directory));
    snprintf(tailed->path, sizeof(tailed->path), "%s/file", tailed->directory);
    snprintf(tailed->server, sizeof(tailed->server), "first_byte_timeout off; %s %s/file;",
        directives, tailed->directory);
    append(tailed, "w", "old\n");
    tailed->test = fb_test_start(protocol, tailed->server);
    ck_assert_ptr_nonnull(tailed->test);
    tailed->peer = fb_test_connect(tailed->test);
    fb_test_run(tailed->test);
}

static void tail_expect(struct tailed *tailed, const char *text)
{
    fb_bytes heard;

    fb_test_run(tailed->test);
    heard = fb_test_heard(tailed->peer);
    ck_assert_uint_eq(heard.n, strlen(text));
    ck_assert_mem_eq(heard.p, text, heard.n);
    fb_test_forget(tailed->peer);
}

static void tail_end(struct tailed *tailed)
{
    ck_assert_int_eq(fb_test_end(&tailed->test), 0);
    unlink(tailed->path);
    ck_assert_int_eq(rmdir(tailed->directory), 0);
}

START_TEST(search_answers)
{
    struct tailed tailed;

    tail_start(&tailed, &fb_protocol_search, "search");
    append(&tailed, "a", "gold\ngolden\n");
    fb_test_says(tailed.peer, "old$\n^gold\nsilver\n[\n");
    tail_expect(&tailed, "old\ngold\n2 lines\ngold\ngolden\n2 lines\n0 lines\n"
                         "error: no regular expression\n");
    unlink(tailed.path);
    fb_test_says(tailed.peer, "x\n");
    tail_expect(&tailed, "error: No such file or directory\n");
    fb_test_says(tailed.peer, "gone\n");
    fb_test_reset(tailed.peer);
    tail_end(&tailed);
}
END_TEST

START_TEST(tail_sends_what_is_appended)
{
    struct tailed tailed;
    char away[80];

    tail_start(&tailed, &fb_protocol_tail, "tail");
    append(&tailed, "a", "one\ntw");
    tail_expect(&tailed, "one\n");
    append(&tailed, "a", "o\n");
    tail_expect(&tailed, "two\n");
    snprintf(away, sizeof(away), "%s.old", tailed.path);
    ck_assert_int_eq(rename(tailed.path, away), 0);
    append(&tailed, "a", "three\n"); /* another file */
    tail_expect(&tailed, "three\n");
    append(&tailed, "w", "4\n"); /* a shorter one */
    tail_expect(&tailed, "4\n");
    unlink(away);
    tail_end(&tailed);
}
END_TEST

/* No file is looked at while there is no client. */
START_TEST(tail_begins_with_its_clients)
{
    struct tailed tailed;

    tail_start(&tailed, &fb_protocol_tail, "tail");
    fb_test_reset(tailed.peer);
    fb_test_run(tailed.test);
    append(&tailed, "a", "nobody sees this\n");
    tailed.peer = fb_test_connect(tailed.test);
    tail_expect(&tailed, "");
    append(&tailed, "a", "but this\n");
    tail_expect(&tailed, "but this\n");
    fb_test_drain(tailed.test, 0);
    ck_assert_int_eq(fb_test_has_ended(tailed.peer), 1);
    tail_end(&tailed);
}
END_TEST

START_TEST(tail_leaves_out_what_is_not_taken)
{
    struct tailed tailed;
    fb_test_peer *other;
    static char much[70001];

    memset(much, 'x', 70000);
    for (size_t i = 99; i < 70000; i += 100)
        much[i] = '\n';
    tail_start(&tailed, &fb_protocol_tail, "output_limit 64k; tail");
    other = fb_test_connect(tailed.test);
    fb_test_run(tailed.test);
    fb_test_take(tailed.peer, 0);
    append(&tailed, "a", much);
    fb_test_run(tailed.test);
    append(&tailed, "a", "left out\n");
    fb_test_run(tailed.test);
    fb_test_take(tailed.peer, SIZE_MAX);
    ck_assert_uint_eq(fb_test_heard(tailed.peer).n, 70000 + 6);
    ck_assert_uint_eq(fb_test_heard(other).n, 70000 + 9);
    fb_test_forget(tailed.peer);
    append(&tailed, "a", "and on\n");
    tail_expect(&tailed, "and on\n");
    tail_end(&tailed);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, balance_goes_on_with_the_next);
    tcase_add_test(tcase, balance_leaves_out_who_does_not_answer);
    tcase_add_test(tcase, chat_reaches_all_or_one);
    tcase_add_test(tcase, dbpool_shares_a_connection);
    tcase_add_test(tcase, dbpool_waits_for_sync);
    tcase_add_test(tcase, dbpool_keeps_transactions_whole);
    tcase_add_test(tcase, dbpool_does_not_know_passwords);
    tcase_add_test(tcase, knock_tells_who_answers);
    tcase_add_test(tcase, search_answers);
    tcase_add_test(tcase, tail_sends_what_is_appended);
    tcase_add_test(tcase, tail_begins_with_its_clients);
    tcase_add_test(tcase, tail_leaves_out_what_is_not_taken);
}

TEST_MAIN("more_examples", add_tests)

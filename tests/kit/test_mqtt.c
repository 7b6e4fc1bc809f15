/* SPDX-License-Identifier: BSD-2-Clause */
/* The example "mqtt" in conversations: each packet, broken rules, and clients of several workers,
 * with a dead and a busy worker. */
#include "support/test.h"

#include <forkbeard/test.h>
#include <string.h>

extern const fb_protocol fb_protocol_mqtt;

/* Packets, whose lengths are counted here. */
#define CONNECT(name) "\x10\x0d\0\4MQTT\4\2\0\0\0\1" name
#define CONNECT_FOR(seconds, name) "\x10\x0d\0\4MQTT\4\2\0" seconds "\0\1" name
#define CONNECT_WILL(name) "\x10\x17\0\4MQTT\4\6\0\0\0\1" name "\0\2w/\0\4gone"
#define CONNACK "\x20\2\0\0"
#define SUBSCRIBE(filter, qos) "\x82\7\0\1\0\2" filter qos
#define SUBACK(qos) "\x90\3\0\1" qos
#define PING "\xc0\0"
#define PONG "\xd0\0"
#define DISCONNECT "\xe0\0"
#define PUBACK(number) "\x40\2\0" number

static int converse(const fb_test_step *script, size_t n)
{
    return fb_test_converse(&fb_protocol_mqtt, "mqtt;", script, n);
}

static int converse_of(uint32_t workers, const fb_test_step *script, size_t n)
{
    const fb_test_options options = {
        .size = sizeof(options), .server = "mqtt;", .workers = workers
    };

    return fb_test_converse_with(&fb_protocol_mqtt, &options, script, n);
}

START_TEST(publishes_and_subscribes)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY(CONNECT("a") SUBSCRIBE("t/", "\1") PING),
        FB_TEST_EXPECT(CONNACK SUBACK("\1") PONG),
        FB_TEST_PEER(1),
        FB_TEST_SAY(CONNECT("b") "\x30\7\0\2t/one"
                                 "\x32\x09\0\2t/\0\7two"
                                 "\x30\7\0\2t-six"),
        FB_TEST_EXPECT(CONNACK PUBACK("\7")),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("\x30\7\0\2t/one"
                       "\x32\x09\0\2t/\0\2two"),
        FB_TEST_SAY(PUBACK("\2") "\xa2\6\0\x09\0\2t/"),
        FB_TEST_EXPECT("\xb0\2\0\x09"),
        FB_TEST_PEER(1),
        FB_TEST_SAY("\x30\7\0\2t/one" DISCONNECT),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(0),
        FB_TEST_SAY(PING),
        FB_TEST_EXPECT(PONG),
    };

    ck_assert_int_eq(converse(FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(retains)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY(CONNECT("a") "\x31\6\0\2t/it"
                                 "\x33\x09\0\2u/\0\1two"
                                 "\x31\6\0\2v/it"
                                 "\x31\4\0\2v/"),
        FB_TEST_EXPECT(CONNACK PUBACK("\1")),
        FB_TEST_PEER(1),
        FB_TEST_SAY(CONNECT("b") SUBSCRIBE("t/", "\1")),
        FB_TEST_EXPECT(CONNACK SUBACK("\1")),
        FB_TEST_PASS(2),
        FB_TEST_EXPECT("\x31\6\0\2t/it"),
        FB_TEST_SAY(SUBSCRIBE("+/", "\2")), /* in any order; an empty message has removed "v/" */
        FB_TEST_EXPECT(SUBACK("\1")),
        FB_TEST_PASS(2),
        FB_TEST_EXPECT_ANY(8 + 11),
        FB_TEST_SAY(SUBSCRIBE("$/", "\0")),
        FB_TEST_EXPECT(SUBACK("\0")),
        FB_TEST_SAY(PING),
        FB_TEST_EXPECT(PONG),
    };

    ck_assert_int_eq(converse(FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(keeps_alive)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY(CONNECT_FOR("\x0a", "a")),
        FB_TEST_EXPECT(CONNACK),
        FB_TEST_PASS(14000),
        FB_TEST_SAY(PING),
        FB_TEST_EXPECT(PONG),
        FB_TEST_PASS(14000),
        FB_TEST_EXPECT(""),
        FB_TEST_EXPECT_CLOSED_WITHIN(2000),
    };

    ck_assert_int_eq(converse(FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(publishes_wills)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY(CONNECT("a") SUBSCRIBE("w+", "\0")), /* no filter */
        FB_TEST_EXPECT(CONNACK),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(1),
        FB_TEST_SAY(CONNECT("a") "\x82\6\0\1\0\1#\0"),
        FB_TEST_EXPECT(CONNACK SUBACK("\0")),
        FB_TEST_PEER(2),
        FB_TEST_SAY(CONNECT_WILL("w")),
        FB_TEST_EXPECT(CONNACK),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT("\x30\x08\0\2w/gone"),
        FB_TEST_PEER(3),
        FB_TEST_SAY(CONNECT_WILL("w") DISCONNECT),
        FB_TEST_EXPECT(CONNACK),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(1),
        FB_TEST_SAY(PING),
        FB_TEST_EXPECT(PONG),
    };

    ck_assert_int_eq(converse(FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(works_over_workers)
{
    static const fb_test_step script[] = {
        FB_TEST_CLIENT(0, 0),
        FB_TEST_SAY(CONNECT("a") SUBSCRIBE("t/", "\0")),
        FB_TEST_EXPECT(CONNACK SUBACK("\0")),
        FB_TEST_CLIENT(1, 1),
        FB_TEST_SAY(CONNECT("b") SUBSCRIBE("t/", "\0")),
        FB_TEST_EXPECT(CONNACK SUBACK("\0")),
        FB_TEST_CLIENT(2, 2),
        FB_TEST_SAY(CONNECT("c") "\x30\7\0\2t/one"),
        FB_TEST_EXPECT(CONNACK),
        FB_TEST_CLIENT(0, 0),
        FB_TEST_EXPECT("\x30\7\0\2t/one"),
        FB_TEST_CLIENT(1, 1),
        FB_TEST_EXPECT("\x30\7\0\2t/one"),
        /* a worker is busy for a while: nothing is lost */
        FB_TEST_LINK(2, 1, FB_TEST_BUSY),
        FB_TEST_CLIENT(2, 2),
        FB_TEST_SAY("\x30\7\0\2t/two"
                    "\x30\7\0\2t/six"),
        FB_TEST_CLIENT(0, 0),
        FB_TEST_EXPECT("\x30\7\0\2t/two"),
        FB_TEST_PASS(20),
        FB_TEST_LINK(2, 1, FB_TEST_DELIVERS),
        FB_TEST_PASS(20),
        FB_TEST_EXPECT("\x30\7\0\2t/six"),
        FB_TEST_CLIENT(1, 1),
        FB_TEST_EXPECT("\x30\7\0\2t/two"
                       "\x30\7\0\2t/six"),
        /* a name has a single client in all workers */
        FB_TEST_CLIENT(3, 2),
        FB_TEST_SAY(CONNECT("a")),
        FB_TEST_EXPECT(CONNACK),
        FB_TEST_CLIENT(0, 0),
        FB_TEST_EXPECT_RESET(),
        FB_TEST_KILL(0),
        FB_TEST_CLIENT(2, 2),
        FB_TEST_SAY("\x30\7\0\2t/end"),
        FB_TEST_CLIENT(1, 1),
        FB_TEST_EXPECT("\x30\7\0\2t/end"),
    };

    ck_assert_int_eq(converse_of(3, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* A draining worker sends all messages of the publishers. */
START_TEST(drains)
{
    static const fb_test_step script[] = {
        FB_TEST_CLIENT(0, 1),
        FB_TEST_SAY(CONNECT("a") SUBSCRIBE("t/", "\0")),
        FB_TEST_EXPECT(CONNACK SUBACK("\0")),
        FB_TEST_LINK(0, 1, FB_TEST_LATE),
        FB_TEST_CLIENT(1, 0),
        FB_TEST_SAY(CONNECT("b") "\x30\7\0\2t/one"),
        FB_TEST_SAY("\x30\7\0\2t/two" DISCONNECT),
        FB_TEST_EXPECT(CONNACK),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_DRAIN_WORKER(0, 0),
        FB_TEST_PASS(100),
        FB_TEST_LINK(0, 1, FB_TEST_DELIVERS),
        FB_TEST_CLIENT(0, 1),
        FB_TEST_EXPECT("\x30\7\0\2t/one"
                       "\x30\7\0\2t/two"),
    };

    ck_assert_int_eq(converse_of(2, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

#define BYTES(text) (text), sizeof(text) - 1

/* A client breaking a rule gets the row's reply, and the connection ends. */
START_TEST(ends_who_breaks_rules)
{
    static const struct {
        const char *says;
        size_t says_n;
        const char *hears;
        size_t hears_n;
    } rows[] = {
        { BYTES(PING), BYTES("") },                                      /* before CONNECT */
        { BYTES(CONNECT("a") CONNECT("a")), BYTES(CONNACK) },            /* twice */
        { BYTES("\x10\x0d\0\4MQTT\5\2\0\0\0\1a"), BYTES("\x20\2\0\1") }, /* another version */
        { BYTES("\x10\x0c\0\4MQTT\4\0\0\0\0\0"),
            BYTES("\x20\2\0\2") }, /* no name, and a session to keep */
        { BYTES("\x10\x0f\0\6MQIsdp\3\2\0\0\0\1a"), BYTES("") },        /* another protocol */
        { BYTES("\x10\x0d\0\4MQTT\4\3\0\0\0\1a"), BYTES("") },          /* a reserved flag */
        { BYTES("\x10\x0d\0\4MQTT\4\2\0\0\0\2a"), BYTES("") },          /* cut */
        { BYTES("\x10\x09\0\4MQTT\4\2\0"), BYTES("") },                 /* cut */
        { BYTES("\x10\x12\0\4MQTT\4\6\0\0\0\1a\0\1+\0\0"), BYTES("") }, /* a will with a wildcard */
        { BYTES(CONNECT("a") "\x30\3\0\1#"), BYTES(CONNACK) },     /* a topic with a wildcard */
        { BYTES(CONNECT("a") "\x30\2\0\0"), BYTES(CONNACK) },      /* no topic */
        { BYTES(CONNECT("a") "\x30\4\0\2a\0"), BYTES(CONNACK) },   /* a NUL */
        { BYTES(CONNECT("a") "\x30\3\0\2a"), BYTES(CONNACK) },     /* cut */
        { BYTES(CONNECT("a") "\x34\5\0\1a\0\1"), BYTES(CONNACK) }, /* QoS 2 */
        { BYTES(CONNECT("a") "\x82\2\0\1"), BYTES(CONNACK "\x90\2\0\1") }, /* no filter */
        { BYTES(CONNECT("a") "\x82\6\0\1\0\1"), BYTES(CONNACK) },          /* cut: more follows */
        { BYTES(CONNECT("a") "\x82\7\0\1\0\2a#\0"), BYTES(CONNACK) }, /* a wildcard in a word */
        { BYTES(CONNECT("a") "\x82\x08\0\1\0\3#/a\0"),
            BYTES(CONNACK) }, /* a wildcard that does not end */
        { BYTES(CONNECT("a") "\x80\6\0\1\0\1a\0"), BYTES(CONNACK) },       /* flags */
        { BYTES(CONNECT("a") "\x20\2\0\0"), BYTES(CONNACK) },              /* a server's packet */
        { BYTES(CONNECT("a") "\xf0\0"), BYTES(CONNACK) },                  /* a later version */
        { BYTES(CONNECT("a") "\x30\xff\xff\xff\xff\x01"), BYTES(CONNACK) } /* a length beyond all */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fb_test *test = fb_test_start(&fb_protocol_mqtt, "mqtt;");
        fb_test_peer *peer = fb_test_connect(test);
        fb_bytes heard;

        fb_test_say(peer, rows[i].says, rows[i].says_n);
        fb_test_shut(peer);
        heard = fb_test_heard(peer);
        ck_assert_msg(fb_test_is_closed(peer), "row %zu is not closed", i);
        ck_assert_msg(heard.n <= rows[i].hears_n && memcmp(heard.p, rows[i].hears, heard.n) == 0,
            "row %zu hears something else", i);
        ck_assert_int_eq(fb_test_end(&test), 0);
    }
}
END_TEST

static fb_test *start(uint32_t workers)
{
    const fb_test_options options = {
        .size = sizeof(options), .server = "mqtt;", .workers = workers
    };

    return fb_test_start_with(&fb_protocol_mqtt, &options);
}

/* A client of a worker, after the greeting. */
static fb_test_peer *connect_to(fb_test *test, unsigned worker, char name)
{
    char bytes[] = CONNECT("?");
    fb_test_peer *peer = fb_test_connect_to(test, worker, 0);

    bytes[sizeof(bytes) - 2] = name;
    fb_test_say(peer, bytes, sizeof(bytes) - 1);
    ck_assert_uint_eq(fb_test_heard(peer).n, sizeof(CONNACK) - 1);
    fb_test_forget(peer);
    return peer;
}

/* Many publishers fill the outbox at once: acknowledged messages arrive. */
START_TEST(publishers_wait)
{
    enum { PUBLISHERS = 90, PAYLOAD = 15900 };
    static uint8_t packet[9 + PAYLOAD] = { 0x32, 0xa2, 0x7c, 0, 2, 't', '/', 0, 1 };
    fb_test *test = start(2);
    fb_test_peer *subscriber = connect_to(test, 1, 'A'), *peers[PUBLISHERS];
    size_t acknowledged = 0;

    fb_test_say(subscriber, BYTES(SUBSCRIBE("t/", "\0")));
    fb_test_forget(subscriber);
    for (int i = 0; i < PUBLISHERS; i++)
        peers[i] = connect_to(test, 0, (char)('B' + i));
    fb_test_link(test, 0, 1, FB_TEST_LATE);
    for (int i = 0; i < PUBLISHERS; i++)
        fb_test_say(peers[i], packet, sizeof(packet));
    fb_test_link(test, 0, 1, FB_TEST_DELIVERS);
    fb_test_pass(test, 1000);
    for (int i = 0; i < PUBLISHERS; i++)
        acknowledged += fb_test_heard(peers[i]).n / 4;
    ck_assert_uint_eq(acknowledged, PUBLISHERS);
    ck_assert_uint_eq(fb_test_heard(subscriber).n, (size_t)PUBLISHERS * (7 + PAYLOAD));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A subscriber without acknowledgements is ended when no number is left, also by messages published
 * itself. */
START_TEST(numbers_run_out)
{
    static uint8_t packets[8192][9];
    fb_test *test = start(1);
    fb_test_peer *peer = connect_to(test, 0, 'a');

    for (int i = 0; i < 8192; i++)
        memcpy(packets[i], "\x32\7\0\2t/\0\1x", 9);
    fb_test_say(peer, BYTES(SUBSCRIBE("t/", "\1")));
    for (int i = 0; i < 8; i++) {
        ck_assert(!fb_test_is_closed(peer));
        fb_test_say(peer, packets, sizeof(packets));
        fb_test_forget(peer);
    }
    ck_assert(fb_test_is_closed(peer));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, publishes_and_subscribes);
    tcase_add_test(tcase, retains);
    tcase_add_test(tcase, keeps_alive);
    tcase_add_test(tcase, publishes_wills);
    tcase_add_test(tcase, works_over_workers);
    tcase_add_test(tcase, drains);
    tcase_add_test(tcase, ends_who_breaks_rules);
    tcase_add_test(tcase, publishers_wait);
    tcase_add_test(tcase, numbers_run_out);
}

TEST_MAIN("mqtt", add_tests)

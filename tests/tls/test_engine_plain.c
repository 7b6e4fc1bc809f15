/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine without cryptography: both roles with each other, in pieces, and with garbage. */
#include "features/hello.h"
#include "support/memory_log.h"
#include "support/test.h"
#include "tls/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static struct tls_pair pairs[] = { { .certificate = 0, .key = 1 } };
static struct tls_profile list[] = {
    { .at = "a:1", .trusted = TLS_NO_FILE, .sends_name = true },
    { .at = "a:2", .alpn = (const uint8_t *)"\2h2\4echo", .alpn_n = 8 },
    { .at = "a:3", .alpn = (const uint8_t *)"\4echo", .alpn_n = 5 },
    { .at = "a:4", .alpn = (const uint8_t *)"\4mqtt", .alpn_n = 5 },
    { .at = "a:5", .reject = true },
    { .at = "a:6", .pairs = pairs, .pair_n = 1 },
    { .at = "a:7", .role = TLS_CLIENT, .trusted = 0 },
    { .at = "a:8", .role = TLS_CLIENT, .trusted = 1 },
};
static struct tls_file file_list[] = { { .path = "/etc/a.eu.crt", .at = "a:6" },
    { .path = "/a.key", .at = "a:7" } };
static const struct tls_profiles profiles = { .list = list, .n = 8, .files = file_list };
static const struct tls_profiles with_files = {
    .list = list, .n = 8, .files = file_list, .file_n = 2
};

/* A handshake's end. */
struct side {
    struct tls_handshake *handshake;
    enum tls_step step;
    struct tls_reply reply;
    uint8_t out[TLS_FLIGHT_MOST], peer[TLS_PEER_MOST];
    uint8_t waiting[1024]; /* for the peer */
    size_t waiting_n;
};

static struct side client, server;
static struct tls_engine *engine;

static int open_none(struct tls_files *files, uint32_t index)
{
    (void)files;
    ck_assert_uint_lt(index, 2);
    if (index == 1)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    errno = ENOENT;
    return -1;
}

static void start_engine(void)
{
    struct tls_files files = { .open = open_none, .profiles = &profiles };

    engine = tls_engine_plain.create(&files, NULL);
    ck_assert_ptr_nonnull(engine);
}

static const char *server_name = ""; /* of clients */

static void start_side(struct side *side, enum tls_role role, uint32_t profile)
{
    const char *name = role == TLS_CLIENT ? server_name : "";
    const struct tls_start start = {
        .role = role,
        .profile = profile,
        .name = { (const uint8_t *)name, strlen(name) },
    };

    *side = (struct side) { .step = TLS_MORE };
    side->handshake = tls_engine_plain.begin(engine, &start);
    ck_assert_ptr_nonnull(side->handshake);
}

static void feed_side(struct side *side, const uint8_t *p, size_t n)
{
    side->reply =
        (struct tls_reply) { .out = side->out, .out_most = sizeof(side->out), .peer = side->peer };
    side->step = tls_engine_plain.feed(side->handshake, (fb_bytes) { p, n }, &side->reply);
    memcpy(side->waiting + side->waiting_n, side->out, side->reply.out_n);
    side->waiting_n += side->reply.out_n;
}

/* Gives the waiting bytes of `from` to `to`, in pieces of so many bytes. */
static void exchange(struct side *from, struct side *to, size_t piece)
{
    for (size_t i = 0; i < from->waiting_n && to->step == TLS_MORE; i += piece)
        feed_side(to, from->waiting + i, from->waiting_n - i < piece ? from->waiting_n - i : piece);
    from->waiting_n = 0;
}

static void shake_hands(uint32_t client_profile, uint32_t server_profile, size_t piece)
{
    start_engine();
    start_side(&client, TLS_CLIENT, client_profile);
    start_side(&server, TLS_SERVER, server_profile);
    feed_side(&client, NULL, 0);
    exchange(&client, &server, piece);
    exchange(&server, &client, piece);
    exchange(&client, &server, piece);
}

static void stop(void)
{
    if (client.handshake != NULL)
        tls_engine_plain.end(client.handshake);
    tls_engine_plain.end(server.handshake);
    tls_engine_plain.destroy(engine);
}

START_TEST(both_ends_get_the_same_keys)
{
    shake_hands(0, 0, (size_t)_i);
    ck_assert_int_eq(client.step, TLS_DONE);
    ck_assert_int_eq(server.step, TLS_DONE);
    ck_assert_mem_eq(client.reply.session.out.key, server.reply.session.in.key, CIPHER_KEY_MOST);
    ck_assert_mem_eq(
        client.reply.session.in.secret, server.reply.session.out.secret, TLS_SECRET_MOST);
    ck_assert_mem_ne(client.reply.session.in.key, client.reply.session.out.key, CIPHER_KEY_MOST);
    ck_assert_uint_eq(server.reply.session.suite, 0);
    ck_assert_uint_eq(server.reply.session.version, TLS_1_3);
    stop();
}
END_TEST

START_TEST(handshakes_have_keys_of_their_own)
{
    struct tls_session first;

    shake_hands(0, 0, 100);
    first = server.reply.session;
    tls_engine_plain.end(client.handshake);
    tls_engine_plain.end(server.handshake);
    start_side(&client, TLS_CLIENT, 0);
    start_side(&server, TLS_SERVER, 0);
    feed_side(&client, NULL, 0);
    exchange(&client, &server, 100);
    exchange(&server, &client, 100);
    exchange(&client, &server, 100);
    ck_assert_int_eq(server.step, TLS_DONE);
    ck_assert_mem_ne(first.in.key, server.reply.session.in.key, CIPHER_KEY_MOST);
    stop();
}
END_TEST

START_TEST(a_protocol_is_chosen)
{
    static const struct {
        uint32_t client, server;
        const char *alpn; /* NULL: none is common */
    } cases[] = { { 0, 0, "" }, { 0, 1, "" }, { 1, 0, "" }, { 1, 1, "h2" }, { 2, 1, "echo" },
        { 1, 2, "echo" }, { 3, 1, NULL } };

    shake_hands(cases[_i].client, cases[_i].server, 1000);
    if (cases[_i].alpn == NULL) {
        ck_assert_int_eq(server.step, TLS_FAILED);
        ck_assert_str_eq(server.reply.text, "no common protocol");
        ck_assert_int_eq(client.step, TLS_FAILED);
        ck_assert_str_eq(client.reply.text, "the peer sent alert 120");
    } else {
        ck_assert_int_eq(client.step, TLS_DONE);
        ck_assert_int_eq(server.step, TLS_DONE);
        ck_assert_uint_eq(server.reply.session.alpn_n, strlen(cases[_i].alpn));
        ck_assert_uint_eq(client.reply.session.alpn_n, strlen(cases[_i].alpn));
        ck_assert_mem_eq(client.reply.session.alpn, cases[_i].alpn, strlen(cases[_i].alpn));
    }
    stop();
}
END_TEST

START_TEST(a_name_is_sent_where_the_profile_says_so)
{
    static char longest[TLS_NAME_MOST + 1];
    static const struct {
        const char *name;
        uint32_t profile;
        bool sent;
    } cases[] = { { "a.eu", 0, true }, { longest, 0, true }, { "", 0, false }, { "a.eu", 2, false },
        { "1.2.3.4", 0, false }, { "::1", 0, false }, { "[::1]", 0, false }, { "[a]", 0, true } };
    size_t n;

    memset(longest, 'a', TLS_NAME_MOST);
    server_name = cases[_i].name;
    shake_hands(cases[_i].profile, 0, 100);
    n = cases[_i].sent ? strlen(server_name) : 0;
    ck_assert_int_eq(server.step, TLS_DONE);
    ck_assert_uint_eq(server.reply.session.name_n, n);
    ck_assert_mem_eq(server.reply.session.name, server_name, n);
    ck_assert_uint_eq(client.reply.session.name_n, n);
    stop();
}
END_TEST

START_TEST(a_certificate_is_verified)
{
    static const struct {
        const char *name;
        uint32_t client, server;
        enum tls_verified verify;
        int code;
    } cases[] = {
        { "a.eu", 6, 5, TLS_VERIFIED, 0 },
        { "a.eu", 6, 0, TLS_VERIFIED_NONE, 0 },
        { "a.eu", 7, 5, TLS_VERIFY_FAILED, 18 },
        { "a.eu", 0, 5, TLS_VERIFY_FAILED, 18 },
        { "b.eu", 6, 5, TLS_VERIFIED_OTHER, 62 },
        { "", 6, 5, TLS_VERIFIED_OTHER, 62 },
    };

    server_name = cases[_i].name;
    shake_hands(cases[_i].client, cases[_i].server, 100);
    ck_assert_int_eq(client.step, TLS_DONE);
    ck_assert_int_eq(client.reply.session.verify, cases[_i].verify);
    ck_assert_int_eq(client.reply.session.verify_code, cases[_i].code);
    ck_assert_int_eq(server.reply.session.verify, TLS_VERIFIED_NONE);
    stop();
}
END_TEST

START_TEST(bytes_behind_the_handshake_are_left)
{
    uint8_t bytes[1024];

    start_engine();
    start_side(&client, TLS_CLIENT, 0);
    start_side(&server, TLS_SERVER, 0);
    feed_side(&client, NULL, 0);
    exchange(&client, &server, 1000);
    exchange(&server, &client, 1000);
    memcpy(bytes, client.waiting, client.waiting_n);
    memcpy(bytes + client.waiting_n, "record", 6);
    feed_side(&server, bytes, client.waiting_n + 6);
    ck_assert_int_eq(server.step, TLS_DONE);
    ck_assert_uint_eq(server.reply.used, client.waiting_n);
    stop();
}
END_TEST

/* Gives a server bytes of an attacker. */
static void feed_server(uint32_t profile, const void *p, size_t n)
{
    client.handshake = NULL;
    start_engine();
    start_side(&server, TLS_SERVER, profile);
    feed_side(&server, p, n);
}

START_TEST(a_hello_has_a_name)
{
    const struct hello hello = hello_of(HELLO_NAME, sizeof(HELLO_NAME) - 1);
    static const uint8_t finished[38] = { 0x16, 3, 3, 0, 33, 3 };

    feed_server(0, hello.p, hello.n);
    ck_assert_int_eq(server.step, TLS_MORE);
    ck_assert_uint_gt(server.reply.out_n, 0);
    feed_side(&server, finished, sizeof(finished));
    ck_assert_int_eq(server.step, TLS_DONE);
    ck_assert_uint_eq(server.reply.session.name_n, 9);
    ck_assert_mem_eq(server.reply.session.name, "one.tests", 9);
    stop();
}
END_TEST

/* The failed server's text, and the alert; 0: none is sent. */
static void check_failed(const char *text, uint8_t alert)
{
    ck_assert_int_eq(server.step, TLS_FAILED);
    ck_assert_str_eq(server.reply.text, text);
    ck_assert_uint_eq(server.reply.out_n, alert != 0 ? 7 : 0);
    if (alert != 0)
        ck_assert_uint_eq(server.out[6], alert);
}

START_TEST(garbage_fails)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *text;
        uint8_t alert;
    } cases[] = {
        { "GET / HTTP/1.1\r\n", 16, "a message that is too long", 22 },
        { "\x17\x03\x03\x00\x01x", 6, "an unexpected message", 10 },
        { "\x16\x03\x03\x00\x00", 5, "an unexpected message", 10 },
        { "\x16\x03\x03\x00\x01\x02", 6, "an unexpected message", 10 },
        { "\x16\x03\x03\x00\x01\x01", 6, "a malformed client hello", 50 },
        { "\x15\x03\x03\x00\x02\x02\x28", 7, "the peer sent alert 40", 0 },
        { "\x15\x03\x03\x00\x00", 5, "the peer sent alert 0", 0 },
    };

    feed_server(0, cases[_i].bytes, cases[_i].n);
    check_failed(cases[_i].text, cases[_i].alert);
    stop();
}
END_TEST

START_TEST(a_malformed_hello_fails)
{
    static const struct {
        const char *extensions;
        size_t n;
    } cases[] = {
        { "\0\0\0\7\0\5\0\0\3a", 10 },
        { "\0\0\0\7\0\5\0\0\2a\0", 11 }, /* a name with a NUL */
        { "\0\x10\0\4\0\2\2x", 8 },
        { "\0\x10\0\4\0\2\0x", 8 },
        { "\0\x10\0\1", 4 },
    };
    struct hello hello = hello_of(cases[_i].extensions, cases[_i].n);

    feed_server(0, hello.p, hello.n);
    check_failed("a malformed client hello", 50);
    stop();
}
END_TEST

START_TEST(a_hello_lies_in_one_record)
{
    struct hello message = hello_message("", 0), hello = hello_records(&message, 40);

    feed_server(0, hello.p, hello.n);
    check_failed("a malformed client hello", 50);
    stop();
}
END_TEST

START_TEST(a_cut_hello_waits)
{
    const struct hello hello = hello_of(HELLO_PROTOCOLS, sizeof(HELLO_PROTOCOLS) - 1);

    for (size_t n = 0; n < hello.n; n++) {
        feed_server(0, hello.p, n);
        ck_assert_int_eq(server.step, TLS_MORE);
        ck_assert_uint_eq(server.reply.used, n);
        ck_assert_uint_eq(server.reply.out_n, 0);
        stop();
    }
    feed_server(0, hello.p, hello.n);
    ck_assert_uint_gt(server.reply.out_n, 0);
    stop();
}
END_TEST

START_TEST(a_profile_may_reject)
{
    shake_hands(0, 4, 1000);
    ck_assert_int_eq(server.step, TLS_FAILED);
    ck_assert_str_eq(client.reply.text, "the peer sent alert 112");
    stop();
}
END_TEST

START_TEST(a_missing_file_is_an_emerg_line)
{
    struct memory_log log;
    struct tls_files files = { .open = open_none, .profiles = &with_files };

    memory_log_open(&log, LEVEL_INFO);
    ck_assert_ptr_null(tls_engine_plain.create(&files, &log.log));
    ck_assert_ptr_nonnull(
        strstr(memory_log_take(&log), "cannot open \"/etc/a.eu.crt\" in a:6 (2: No such file"));
    memory_log_close(&log);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, both_ends_get_the_same_keys, 1, 60);
    tcase_add_test(tcase, handshakes_have_keys_of_their_own);
    tcase_add_loop_test(tcase, a_protocol_is_chosen, 0, 7);
    tcase_add_loop_test(tcase, a_name_is_sent_where_the_profile_says_so, 0, 8);
    tcase_add_loop_test(tcase, a_certificate_is_verified, 0, 6);
    tcase_add_test(tcase, bytes_behind_the_handshake_are_left);
    tcase_add_test(tcase, a_hello_has_a_name);
    tcase_add_loop_test(tcase, garbage_fails, 0, 7);
    tcase_add_loop_test(tcase, a_malformed_hello_fails, 0, 5);
    tcase_add_test(tcase, a_hello_lies_in_one_record);
    tcase_add_test(tcase, a_cut_hello_waits);
    tcase_add_test(tcase, a_profile_may_reject);
    tcase_add_test(tcase, a_missing_file_is_an_emerg_line);
}

TEST_MAIN("engine_plain", add_tests)

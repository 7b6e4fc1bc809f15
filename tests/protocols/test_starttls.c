/* SPDX-License-Identifier: BSD-2-Clause */
/* proxy_starttls, in conversations of clients and servers with the proxy. */
#include "kit/kit.h"
#include "support/test.h"
#include "upstream/peers.h"

#include <forkbeard/test.h>
#include <string.h>

extern const fb_protocol fb_protocol_proxy;

#define SERVER_AT "10.0.0.1:25"
#define CERTIFICATE "ssl_certificate m.crt; ssl_certificate_key m.key;"
#define PASS "proxy_pass " SERVER_AT "; " CERTIFICATE
#define ACCEPT FB_TEST_SERVER(1, SERVER_AT)
#define SERVER FB_TEST_PEER(1)
#define CLIENT FB_TEST_PEER(0)
#define BEGINS(text) FB_TEST_EXPECT(text), FB_TEST_TLS("")

static int converse(const char *server, const fb_test_step *script, size_t n)
{
    const fb_test_options options = { .size = sizeof(options), .server = server };

    return fb_test_converse_with(&fb_protocol_proxy, &options, script, n);
}

#define SMTP_BEGIN                                                                                 \
    CLIENT, ACCEPT, FB_TEST_SAY("220-a\r\n220 b\r\n"), CLIENT, FB_TEST_EXPECT("220-a\r\n220 b\r\n")
#define SMTP_READY "220 2.0.0 ready to start TLS\r\n"

START_TEST(smtp_clients_start_tls)
{
    static const fb_test_step script[] = {
        SMTP_BEGIN,
        FB_TEST_SAY("EHLO me\r\n"),
        SERVER,
        FB_TEST_EXPECT("EHLO me\r\n"),
        FB_TEST_SAY("250-a\r\n250-STARTTLS\r\n250-AUTH PLAIN\r\n250 SIZE 9\r\n"),
        CLIENT,
        FB_TEST_EXPECT("250-a\r\n250-SIZE 9\r\n250 STARTTLS\r\n"),
        FB_TEST_SAY("MAIL FROM:<a>\r\nNOOP\r\n"),
        FB_TEST_EXPECT("530 5.7.0 must issue a STARTTLS command first\r\n"),
        SERVER,
        FB_TEST_EXPECT("NOOP\r\n"),
        FB_TEST_SAY("250 ok\r\n"),
        CLIENT,
        FB_TEST_EXPECT("250 ok\r\n"),
        FB_TEST_SAY("starttls x\r\nSTARTTLS\r\n"),
        FB_TEST_EXPECT("501 5.5.4 no parameters are allowed\r\n"),
        BEGINS(SMTP_READY),
        FB_TEST_SAY("EHLO me\r\nSTARTTLS\r\nMAIL FROM:<a>\r\n"),
        SERVER,
        FB_TEST_EXPECT("EHLO me\r\n"),
        FB_TEST_SAY("250-a\r\n250-AUTH PLAIN\r\n250 STARTTLS\r\n"),
        CLIENT,
        FB_TEST_EXPECT("250-a\r\n250 AUTH PLAIN\r\n503 5.5.1 TLS is active\r\n"),
        SERVER,
        FB_TEST_EXPECT("MAIL FROM:<a>\r\n"),
        FB_TEST_SAY("250 STARTTLS\r\n"),
        CLIENT,
        FB_TEST_EXPECT("250 STARTTLS\r\n"), /* no capability */
        FB_TEST_SAY("EHLO\nany bytes"),
        SERVER,
        FB_TEST_EXPECT("EHLO\nany bytes"),
        FB_TEST_SHUT(),
        CLIENT,
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(converse(PASS "proxy_starttls smtp;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* Harmless commands before the capabilities do not end the dialogue. */
START_TEST(capabilities_may_be_asked_for_later)
{
    static const fb_test_step smtp[] = {
        SMTP_BEGIN,
        FB_TEST_SAY("STARTTLS\r\n"),
        BEGINS(SMTP_READY),
        FB_TEST_SAY("HELO me\r\nNOOP\r\nRSET\r\nEHLO me\r\n"),
        SERVER,
        FB_TEST_EXPECT("HELO me\r\n"),
        FB_TEST_SAY("250 a\r\n"),
        FB_TEST_EXPECT("NOOP\r\n"),
        FB_TEST_SAY("250 ok\r\n"),
        FB_TEST_EXPECT("RSET\r\n"),
        FB_TEST_SAY("250 ok\r\n"),
        FB_TEST_EXPECT("EHLO me\r\n"),
        FB_TEST_SAY("250-a\r\n250-AUTH PLAIN\r\n250 STARTTLS\r\n"),
        CLIENT,
        FB_TEST_EXPECT("250 a\r\n250 ok\r\n250 ok\r\n250-a\r\n250 AUTH PLAIN\r\n"),
        FB_TEST_SAY("QUIT\r\n"),
        SERVER,
        FB_TEST_EXPECT("QUIT\r\n"),
    };

    ck_assert_int_eq(converse(PASS "proxy_starttls smtp;", FB_TEST_SCRIPT(smtp)), 0);
}
END_TEST

/* Plain commands behind STARTTLS reach neither the server nor us. */
START_TEST(plain_commands_do_not_follow)
{
    static const fb_test_step script[] = {
        SMTP_BEGIN,
        FB_TEST_SAY("STARTTLS\r\nRSET\r\nMAIL FROM:<a>\r\n"),
        FB_TEST_EXPECT(SMTP_READY),
        FB_TEST_EXPECT_ANY(7), /* an alert */
        FB_TEST_EXPECT_CLOSED(),
        SERVER,
        FB_TEST_EXPECT_RESET(),
    };

    ck_assert_int_eq(converse(PASS "proxy_starttls smtp;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(smtp_clients_may_go_on_without)
{
    static const fb_test_step script[] = {
        SMTP_BEGIN,
        FB_TEST_SAY("EHLO me\r\n"),
        SERVER,
        FB_TEST_EXPECT("EHLO me\r\n"),
        FB_TEST_SAY("250 a\r\n"),
        CLIENT,
        FB_TEST_EXPECT("250-a\r\n250 STARTTLS\r\n"),
        FB_TEST_SAY("MAIL FROM:<a>\r\nRCPT TO:<b>\r\n"),
        SERVER,
        FB_TEST_EXPECT("MAIL FROM:<a>\r\nRCPT TO:<b>\r\n"),
        FB_TEST_SAY("250 ok\r\n"),
        CLIENT,
        FB_TEST_EXPECT("250 ok\r\n"),
    };

    ck_assert_int_eq(converse(PASS "proxy_starttls smtp optional;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* On a port of its own TLS begins with the session, and is not offered again. */
START_TEST(clients_may_begin_with_tls)
{
    static const fb_test_step script[] = {
        FB_TEST_TLS(""),
        ACCEPT,
        FB_TEST_SAY("220 a\r\n"),
        CLIENT,
        FB_TEST_EXPECT("220 a\r\n"),
        FB_TEST_SAY("EHLO me\r\n"),
        SERVER,
        FB_TEST_EXPECT("EHLO me\r\n"),
        FB_TEST_SAY("250-a\r\n250 STARTTLS\r\n"),
        CLIENT,
        FB_TEST_EXPECT("250 a\r\n"),
    };
    static const fb_test_options options = {
        .size = sizeof(options), .server = PASS "proxy_starttls smtp;", .listen = "ssl"
    };

    ck_assert_int_eq(
        fb_test_converse_with(&fb_protocol_proxy, &options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(imap_clients_start_tls)
{
    static const fb_test_step script[] = {
        CLIENT,
        ACCEPT,
        FB_TEST_SAY("* OK [CAPABILITY IMAP4rev1 STARTTLS AUTH=PLAIN] hi\r\n"),
        CLIENT,
        FB_TEST_EXPECT("* OK [CAPABILITY IMAP4rev1 STARTTLS LOGINDISABLED] hi\r\n"),
        FB_TEST_SAY("a CAPABILITY\r\n"),
        SERVER,
        FB_TEST_EXPECT("a CAPABILITY\r\n"),
        FB_TEST_SAY("* capability IMAP4rev1 AUTH=PLAIN\r\na OK done\r\n"),
        CLIENT,
        FB_TEST_EXPECT("* capability IMAP4rev1 STARTTLS LOGINDISABLED\r\na OK done\r\n"),
        FB_TEST_SAY("b LOGIN me {3}\r\n\r\nc STARTTLS\r\n"),
        FB_TEST_EXPECT("b NO [PRIVACYREQUIRED] must issue a STARTTLS command first\r\n"),
        FB_TEST_EXPECT("* BAD syntax error\r\n"),
        BEGINS("c OK begin TLS negotiation now\r\n"),
        FB_TEST_SAY("d CAPABILITY\r\ne LOGIN me secret\r\n"),
        SERVER,
        FB_TEST_EXPECT("d CAPABILITY\r\n"),
        FB_TEST_SAY("* CAPABILITY IMAP4rev1 STARTTLS AUTH=PLAIN\r\nd OK done\r\n"),
        CLIENT,
        FB_TEST_EXPECT("* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\nd OK done\r\n"),
        SERVER,
        FB_TEST_EXPECT("e LOGIN me secret\r\n"),
        FB_TEST_SAY("* CAPABILITY STARTTLS\r\n"),
        CLIENT,
        FB_TEST_EXPECT("* CAPABILITY STARTTLS\r\n"),
    };

    ck_assert_int_eq(converse(PASS "proxy_starttls imap;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(pop3_clients_start_tls)
{
    static const fb_test_step script[] = {
        CLIENT,
        ACCEPT,
        FB_TEST_SAY("+OK hi\r\n"),
        CLIENT,
        FB_TEST_EXPECT("+OK hi\r\n"),
        FB_TEST_SAY("CAPA\r\n"),
        SERVER,
        FB_TEST_EXPECT("CAPA\r\n"),
        FB_TEST_SAY("+OK\r\nTOP\r\nUSER\r\nSASL PLAIN\r\n.\r\n"),
        CLIENT,
        FB_TEST_EXPECT("+OK\r\nTOP\r\nSTLS\r\n.\r\n"),
        FB_TEST_SAY("USER me\r\nSTLS\r\n"),
        FB_TEST_EXPECT("-ERR must issue a STLS command first\r\n"),
        BEGINS("+OK begin TLS negotiation\r\n"),
        FB_TEST_SAY("CAPA\r\nSTLS\r\nUSER me\r\n"),
        SERVER,
        FB_TEST_EXPECT("CAPA\r\n"),
        FB_TEST_SAY("+OK\r\nSTLS\r\nUSER\r\n.\r\n"),
        CLIENT,
        FB_TEST_EXPECT("+OK\r\nUSER\r\n.\r\n-ERR TLS is active\r\n"),
        SERVER,
        FB_TEST_EXPECT("USER me\r\n"),
    };

    ck_assert_int_eq(converse(PASS "proxy_starttls pop3;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* ---- PostgreSQL ---- */

#define SSL_REQUEST "\0\0\0\x08\x04\xd2\x16\x2f"
#define GSSENC_REQUEST "\0\0\0\x08\x04\xd2\x16\x30"
#define STARTUP "\0\0\0\x09\0\3\0\0\0"

START_TEST(postgres_clients_ask_for_tls)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY(GSSENC_REQUEST SSL_REQUEST),
        BEGINS("NS"),
        FB_TEST_SAY(STARTUP),
        ACCEPT,
        FB_TEST_EXPECT(STARTUP),
        FB_TEST_SAY("reply"),
        CLIENT,
        FB_TEST_EXPECT("reply"),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
    };
    static const fb_test_step at_once[] = {
        FB_TEST_TLS("alpn=postgresql"),
        FB_TEST_SAY(STARTUP),
        ACCEPT,
        FB_TEST_EXPECT(STARTUP),
    };

    ck_assert_int_eq(converse(PASS "proxy_starttls postgres;", FB_TEST_SCRIPT(script)), 0);
    ck_assert_int_eq(
        converse(PASS "proxy_starttls postgres; ssl_alpn postgresql;", FB_TEST_SCRIPT(at_once)), 0);
}
END_TEST

START_TEST(postgres_clients_without_tls)
{
    static const char refusal[] = "E\0\0\0\x3e"
                                  "SFATAL\0VFATAL\0C28000\0Mthe connection needs TLS (sslmode)\0";
    static const fb_test_step refused[] = {
        CLIENT,
        ACCEPT,
        CLIENT,
        FB_TEST_SAY(STARTUP),
        FB_TEST_EXPECT_BYTES(refusal, sizeof(refusal)),
        FB_TEST_EXPECT_CLOSED(),
    };
    static const fb_test_step passed[] = {
        FB_TEST_SAY(GSSENC_REQUEST STARTUP),
        FB_TEST_EXPECT("N"),
        ACCEPT,
        FB_TEST_EXPECT(STARTUP),
        FB_TEST_SAY("reply"),
        CLIENT,
        FB_TEST_EXPECT("reply"),
    };

    ck_assert_int_eq(converse(PASS "proxy_starttls postgres;", FB_TEST_SCRIPT(refused)), 0);
    ck_assert_int_eq(converse(PASS "proxy_starttls postgres optional;", FB_TEST_SCRIPT(passed)), 0);
}
END_TEST

/* ---- Servers ---- */

/* TLS on both sides: after STARTTLS to the client, and at once to the server. */
START_TEST(servers_may_have_tls_too)
{
    static const fb_test_step script[] = {
        CLIENT,
        ACCEPT,
        FB_TEST_TLS("cert=mail.test.crt"),
        FB_TEST_SAY("220 a\r\n"),
        CLIENT,
        FB_TEST_EXPECT("220 a\r\n"),
        FB_TEST_SAY("STARTTLS\r\n"),
        BEGINS(SMTP_READY),
        FB_TEST_SAY("EHLO me\r\n"),
        SERVER,
        FB_TEST_EXPECT("EHLO me\r\n"),
        FB_TEST_KEY_UPDATE(1),
        FB_TEST_SAY("250 a\r\n"),
        CLIENT,
        FB_TEST_EXPECT("250 a\r\n"),
        FB_TEST_SAY("QUIT\r\n"),
        SERVER,
        FB_TEST_EXPECT("QUIT\r\n"),
        FB_TEST_SAY("221 bye\r\n"),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED_WITHIN(1),
        CLIENT,
        FB_TEST_EXPECT("221 bye\r\n"),
        FB_TEST_EXPECT_CLOSED_WITHIN(1),
    };

    ck_assert_int_eq(converse(PASS "proxy_starttls smtp; proxy_ssl on; proxy_ssl_verify on;"
                                   "proxy_ssl_name mail.test;"
                                   "proxy_ssl_trusted_certificate mail.test.crt;",
                         FB_TEST_SCRIPT(script)),
        0);
}
END_TEST

START_TEST(a_server_may_speak_otherwise)
{
    static const fb_test_step script[] = {
        CLIENT,
        ACCEPT,
        FB_TEST_SAY("SSH-2.0\r\n"),
        FB_TEST_EXPECT_CLOSED(),
        CLIENT,
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(converse(PASS "proxy_starttls smtp;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(a_server_may_close)
{
    static const fb_test_step script[] = {
        SMTP_BEGIN,
        FB_TEST_SAY("QUIT\r\n"),
        SERVER,
        FB_TEST_EXPECT("QUIT\r\n"),
        FB_TEST_SAY("221 bye\r\n"),
        FB_TEST_SHUT(),
        CLIENT,
        FB_TEST_EXPECT("221 bye\r\n"),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(converse(PASS "proxy_starttls smtp;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* A server with unasked words behind its capabilities is a server of the protocol still. */
START_TEST(a_server_may_say_more_than_it_was_asked)
{
    static const fb_test_step smtp[] = {
        SMTP_BEGIN,
        FB_TEST_SAY("EHLO me\r\n"),
        SERVER,
        FB_TEST_EXPECT("EHLO me\r\n"),
        FB_TEST_SAY("250-a\r\n250 SIZE 9\r\n"),
        CLIENT,
        FB_TEST_EXPECT("250-a\r\n250-SIZE 9\r\n250 STARTTLS\r\n"),
        SERVER,
        FB_TEST_SAY("421 4.4.2 timed out\r\n"),
        FB_TEST_SHUT(),
        CLIENT,
        FB_TEST_EXPECT("421 4.4.2 timed out\r\n"),
        FB_TEST_EXPECT_CLOSED(),
    };
    static const fb_test_step pop3[] = {
        CLIENT,
        ACCEPT,
        FB_TEST_SAY("+OK hi\r\n"),
        CLIENT,
        FB_TEST_EXPECT("+OK hi\r\n"),
        FB_TEST_SAY("CAPA\r\n"),
        SERVER,
        FB_TEST_EXPECT("CAPA\r\n"),
        FB_TEST_SAY("+OK\r\nTOP\r\n.\r\n"),
        CLIENT,
        FB_TEST_EXPECT("+OK\r\nTOP\r\nSTLS\r\n.\r\n"),
        SERVER,
        FB_TEST_SAY("USER is no capability here\r\n"),
        FB_TEST_SHUT(),
        CLIENT,
        FB_TEST_EXPECT("USER is no capability here\r\n"),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(converse(PASS "proxy_starttls smtp;", FB_TEST_SCRIPT(smtp)), 0);
    ck_assert_int_eq(converse(PASS "proxy_starttls pop3;", FB_TEST_SCRIPT(pop3)), 0);
}
END_TEST

/* A server whose connection has no memory for the dialogue was used. */
START_TEST(memory_may_be_short)
{
    const fb_test_options options = { .size = sizeof(options),
        .server = "proxy_pass group; " CERTIFICATE "proxy_starttls smtp;",
        .stream = "upstream group { server " SERVER_AT "; server 10.0.0.2:25; }" };
    fb_test *test = fb_test_start_with(&fb_protocol_proxy, &options);
    fb_test_server *server = fb_test_serve(test, SERVER_AT, FB_TEST_ACCEPTS);
    fb_test_peer *client, *peer;
    const struct upstream *group = STAILQ_FIRST(test->workers[0].worker.stream.upstreams.list);

    fb_test_refuse_memory(test, (uint64_t)_i, 1);
    client = fb_test_connect(test);
    fb_test_run(test);
    peer = fb_test_accept(server);
    if (peer != NULL && !fb_test_is_closed(peer)) {
        fb_test_says(peer, "220 a\r\n");
        ck_assert_uint_eq(fb_test_heard(client).n, 7);
        fb_test_reset(client);
        fb_test_run(test);
    }
    ck_assert(fb_test_is_closed(client) && (peer == NULL || fb_test_is_closed(peer)));
    ck_assert_uint_eq(PEER_LOAD(group->peers->list[0]->state->sessions), peer != NULL);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_silent_client_times_out)
{
    static const fb_test_step script[] = {
        SMTP_BEGIN,
        FB_TEST_SAY("EHLO me\r\n"),
        SERVER,
        FB_TEST_EXPECT("EHLO me\r\n"),
        CLIENT,
        FB_TEST_PASS(1000),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(
        converse(PASS "proxy_starttls smtp; proxy_timeout 1s;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    if (!HAVE_OPENSSL)
        return;
    tcase_add_test(tcase, smtp_clients_start_tls);
    tcase_add_test(tcase, capabilities_may_be_asked_for_later);
    tcase_add_test(tcase, plain_commands_do_not_follow);
    tcase_add_test(tcase, smtp_clients_may_go_on_without);
    tcase_add_test(tcase, clients_may_begin_with_tls);
    tcase_add_test(tcase, imap_clients_start_tls);
    tcase_add_test(tcase, pop3_clients_start_tls);
    tcase_add_test(tcase, postgres_clients_ask_for_tls);
    tcase_add_test(tcase, postgres_clients_without_tls);
    tcase_add_test(tcase, servers_may_have_tls_too);
    tcase_add_test(tcase, a_server_may_speak_otherwise);
    tcase_add_test(tcase, a_server_may_close);
    tcase_add_test(tcase, a_server_may_say_more_than_it_was_asked);
    tcase_add_loop_test(tcase, memory_may_be_short, 0, 12);
    tcase_add_test(tcase, a_silent_client_times_out);
}

TEST_MAIN("starttls", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS in the test kit, and the SDK's calls about TLS: conversations without cryptography. */
#include "kit/starttls.h"
#include "support/test.h"

#include <forkbeard/test.h>
#include <string.h>

#define PAIR "ssl_certificate mail.test.crt; ssl_certificate_key mail.test.key;"
#define SERVER "starttls; " PAIR

static const fb_test_options options = {
    .size = sizeof(options), .excuse = "no\n", .server = SERVER
};

static int converse(const fb_test_options *with, const fb_test_step *script, size_t n)
{
    return fb_test_converse_with(&fb_protocol_starttls, with, script, n);
}

START_TEST(a_build_with_openssl_has_tls)
{
    ck_assert_int_eq(fb_test_has_tls(), HAVE_OPENSSL);
}
END_TEST

START_TEST(a_session_starts_tls)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("hello\n"),
        FB_TEST_EXPECT("hello\n"),
        FB_TEST_SAY("who\ntls\n"),
        FB_TEST_EXPECT("nobody\ngo\n"),
        FB_TEST_TLS("sni=mail.test alpn=imap,smtp"),
        FB_TEST_EXPECT("welcome\nstarted\n"),
        FB_TEST_SAY("who\n"),
        FB_TEST_EXPECT("0x304 PLAIN sni=mail.test alpn=smtp verify=0 0 \n"),
        FB_TEST_KEY_UPDATE(1),
        FB_TEST_SAY("again\ntls\n"),
        FB_TEST_EXPECT("again\ncannot\n"),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
    };
    static const fb_test_options with = {
        .size = sizeof(with), .excuse = "no\n", .server = SERVER "ssl_alpn smtp;"
    };

    ck_assert_int_eq(converse(&with, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(a_listener_begins_with_tls)
{
    static const fb_test_step script[] = {
        FB_TEST_TLS("cert=alice.crt"),
        FB_TEST_SAY("who\n"),
        FB_TEST_EXPECT("0x304 PLAIN sni= alpn= verify=1 0 alice.crt\n"),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
    };
    static const fb_test_options with = { .size = sizeof(with),
        .excuse = "no\n",
        .server = SERVER "ssl_verify_client on; ssl_client_certificate alice.crt;",
        .listen = "ssl" };

    ck_assert_int_eq(converse(&with, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* Commands behind STARTTLS are no handshake, and never carried out. */
START_TEST(plain_commands_do_not_follow)
{
    static const char alert[] = "\x15\x03\x03\x00\x02\x02";
    static const fb_test_step script[] = {
        FB_TEST_SAY("tls\nsmuggled\n"),
        FB_TEST_EXPECT("go\n"),
        FB_TEST_EXPECT_BYTES(alert, sizeof(alert) - 1),
        FB_TEST_EXPECT_ANY(1),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(converse(&options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(a_certificate_may_be_refused)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("tls\n"),
        FB_TEST_EXPECT("go\n"),
        FB_TEST_TLS("cert=bob.crt"),
        FB_TEST_EXPECT_CLOSED(),
    };
    static const fb_test_options with = { .size = sizeof(with),
        .excuse = "no\n",
        .server = SERVER "ssl_verify_client on; ssl_client_certificate alice.crt;" };
    fb_test *test;
    fb_test_peer *peer;

    ck_assert_int_eq(converse(&with, FB_TEST_SCRIPT(script)), 0);
    test = fb_test_start_with(&fb_protocol_starttls, &with);
    peer = fb_test_connect(test);
    fb_test_says(peer, "tls\n");
    ck_assert_int_eq(fb_test_tls(peer, "cert=bob.crt"), 0);
    ck_assert(fb_test_is_closed(peer));
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "started 0, reason 14"));
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "verify error: (18:"));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_protocol_may_be_refused)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("tls\n"),
        FB_TEST_EXPECT("go\n"),
        FB_TEST_TLS_REFUSED("alpn=http/1.1"),
        FB_TEST_EXPECT_CLOSED(),
    };
    static const fb_test_options with = {
        .size = sizeof(with), .excuse = "no\n", .server = SERVER "ssl_alpn smtp;"
    };

    ck_assert_int_eq(converse(&with, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* ---- Faults ---- */

START_TEST(a_verdict_may_be_late)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("tls\n"),
        FB_TEST_EXPECT("go\n"),
        FB_TEST_KEEPER(FB_TEST_KEEPER_LATE),
        FB_TEST_TLS(""),
        FB_TEST_PASS(59999),
        FB_TEST_KEEPER(FB_TEST_KEEPER_SERVES),
        FB_TEST_EXPECT("welcome\nstarted\n"),
        FB_TEST_SAY("hello\n"),
        FB_TEST_EXPECT("hello\n"),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
    };
    static const fb_test_step too_late[] = {
        FB_TEST_SAY("tls\n"),
        FB_TEST_EXPECT("go\n"),
        FB_TEST_KEEPER(FB_TEST_KEEPER_LATE),
        FB_TEST_TLS(""),
        FB_TEST_PASS(60000),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(converse(&options, FB_TEST_SCRIPT(script)), 0);
    ck_assert_int_eq(converse(&options, FB_TEST_SCRIPT(too_late)), 0);
}
END_TEST

/* A lost keeper fails the handshake under way, and no session, and no later handshake. */
START_TEST(a_keeper_may_be_lost)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("tls\n"),
        FB_TEST_EXPECT("go\n"),
        FB_TEST_TLS(""),
        FB_TEST_EXPECT("welcome\nstarted\n"),
        FB_TEST_PEER(1),
        FB_TEST_SAY("tls\n"),
        FB_TEST_EXPECT("go\n"),
        FB_TEST_KEEPER(FB_TEST_KEEPER_LATE),
        FB_TEST_TLS(""),
        FB_TEST_KEEPER(FB_TEST_KEEPER_LOST),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(0),
        FB_TEST_SAY("still here\n"),
        FB_TEST_EXPECT("still here\n"),
        FB_TEST_PEER(2),
        FB_TEST_SAY("tls\n"),
        FB_TEST_EXPECT("go\n"),
        FB_TEST_TLS(""),
        FB_TEST_EXPECT("welcome\nstarted\n"),
    };

    ck_assert_int_eq(converse(&options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(an_alert_ends_the_session)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("tls\n"),
        FB_TEST_EXPECT("go\n"),
        FB_TEST_TLS(""),
        FB_TEST_EXPECT("welcome\nstarted\n"),
        FB_TEST_ALERT(40),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(converse(&options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(what_is_said_wrongly_is_answered_by_an_alert)
{
    fb_test *test;
    fb_test_peer *peer;

    test = fb_test_start(&fb_protocol_starttls, SERVER);
    peer = fb_test_connect(test);
    fb_test_says(peer, "tls\n");
    ck_assert_int_eq(fb_test_alerted(peer), -1);
    ck_assert_int_eq(fb_test_tls(peer, ""), 0);
    ck_assert_int_eq(fb_test_alerted(peer), -1);
    fb_test_alert(peer, 90); /* user_canceled, a warning */
    for (unsigned i = 0; i < 100; i++)
        fb_test_key_update(peer, 0);
    ck_assert_int_eq(fb_test_alerted(peer), 10);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(an_end_may_be_cut_off)
{
    fb_test *test;
    fb_test_peer *peer;

    test = fb_test_start(&fb_protocol_starttls, SERVER);
    peer = fb_test_connect(test);
    fb_test_says(peer, "tls\n");
    ck_assert_int_eq(fb_test_tls(peer, ""), 0);
    if (_i == 0)
        fb_test_truncate(peer);
    else
        fb_test_shut(peer);
    ck_assert(fb_test_is_closed(peer));
    ck_assert_int_eq(
        strstr(fb_test_logged(test), "the peer has ended without close_notify") != NULL, _i == 0);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Without a certificate the call is refused, and the session goes on in plain. */
START_TEST(a_server_may_lack_tls)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("tls\nplain\n"),
        FB_TEST_EXPECT("cannot\nplain\n"),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(
        fb_test_converse(&fb_protocol_starttls, "starttls;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* A worker of several dies within a handshake. */
START_TEST(workers_have_keepers)
{
    static const fb_test_step script[] = {
        FB_TEST_CLIENT(0, 1),
        FB_TEST_SAY("tls\n"),
        FB_TEST_EXPECT("go\n"),
        FB_TEST_TLS(""),
        FB_TEST_EXPECT("welcome\nstarted\n"),
        FB_TEST_CLIENT(1, 0),
        FB_TEST_SAY("tls\n"),
        FB_TEST_EXPECT("go\n"),
        FB_TEST_KILL(0),
        FB_TEST_REPLACE(0),
        FB_TEST_EXPECT_RESET(),
        FB_TEST_CLIENT(2, 0),
        FB_TEST_SAY("tls\n"),
        FB_TEST_EXPECT("go\n"),
        FB_TEST_TLS(""),
        FB_TEST_EXPECT("welcome\nstarted\n"),
    };
    static const fb_test_options with = {
        .size = sizeof(with), .excuse = "no\n", .server = SERVER, .workers = 2
    };

    ck_assert_int_eq(converse(&with, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_build_with_openssl_has_tls);
    tcase_add_test(tcase, a_server_may_lack_tls);
    if (!HAVE_OPENSSL)
        return;
    tcase_add_test(tcase, a_session_starts_tls);
    tcase_add_test(tcase, a_listener_begins_with_tls);
    tcase_add_test(tcase, plain_commands_do_not_follow);
    tcase_add_test(tcase, a_certificate_may_be_refused);
    tcase_add_test(tcase, a_protocol_may_be_refused);
    tcase_add_test(tcase, a_verdict_may_be_late);
    tcase_add_test(tcase, a_keeper_may_be_lost);
    tcase_add_test(tcase, an_alert_ends_the_session);
    tcase_add_test(tcase, what_is_said_wrongly_is_answered_by_an_alert);
    tcase_add_loop_test(tcase, an_end_may_be_cut_off, 0, 2);
    tcase_add_test(tcase, workers_have_keepers);
}

TEST_MAIN("tls", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Conversations with the example of an SMTP server, TLS included, without cryptography. */
#include "support/test.h"

#include <forkbeard/test.h>
#include <string.h>

extern const fb_protocol fb_protocol_smtp;

#define GREETING "220 forkbeard ESMTP\r\n"
#define PLAIN_EHLO "250-forkbeard\r\n250-SIZE 65536\r\n250 8BITMIME\r\n"
#define OFFERING_EHLO "250-forkbeard\r\n250-SIZE 65536\r\n250-STARTTLS\r\n250 8BITMIME\r\n"
#define READY "220 2.0.0 ready to start TLS\r\n"
#define PAIR "ssl_certificate mail.test.crt; ssl_certificate_key mail.test.key;"

static int converse(const char *server, const fb_test_step *script, size_t n)
{
    /* without memory STARTTLS is refused, or DATA */
    const fb_test_options options = { .size = sizeof(options), .server = server, .excuse = "45" };

    return fb_test_converse_with(&fb_protocol_smtp, &options, script, n);
}

START_TEST(a_message_is_taken)
{
    static const fb_test_step script[] = {
        FB_TEST_EXPECT(GREETING),
        FB_TEST_SAY("EHLO client\r\n"),
        FB_TEST_EXPECT(PLAIN_EHLO),
        FB_TEST_SAY(
            "mail from:<a@test> SIZE=100\r\nRCPT TO:<b@test>\r\nrcpt to:<c@test>\r\nDATA\r\n"),
        FB_TEST_EXPECT("250 2.1.0 ok\r\n250 2.1.5 ok\r\n250 2.1.5 ok\r\n"),
        FB_TEST_EXPECT("354 end with a line that is a dot\r\n"),
        FB_TEST_SAY("Subject: x\r\n\r\n..\r\n\n.\n\r\n.\r\n"),
        FB_TEST_EXPECT("250 2.0.0 accepted\r\n"),
        FB_TEST_SAY("QUIT\r\n"),
        FB_TEST_EXPECT("221 2.0.0 bye\r\n"),
        FB_TEST_EXPECT_CLOSED(),
    };
    fb_test *test;
    fb_test_peer *peer;

    ck_assert_int_eq(converse("smtp;", FB_TEST_SCRIPT(script)), 0);
    test = fb_test_start(&fb_protocol_smtp, "smtp;");
    peer = fb_test_connect(test);
    fb_test_says(peer, "EHLO c\r\nMAIL FROM:<a@test>\r\nRCPT TO:<b@test>\r\nDATA\r\n..x\r\n.\r\n");
    fb_test_run(test);
    ck_assert_ptr_nonnull(strstr(
        fb_test_logged(test), "message of 4 bytes from <a@test> to 1 recipients, by no TLS"));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(commands_have_an_order)
{
    static const fb_test_step script[] = {
        FB_TEST_EXPECT(GREETING),
        FB_TEST_SAY("MAIL FROM:<>\r\n"),
        FB_TEST_EXPECT("503 5.5.1 bad sequence of commands\r\n"),
        FB_TEST_SAY("HELO client\r\nDATA\r\nRCPT TO:<b@test>\r\n"),
        FB_TEST_EXPECT("250 forkbeard\r\n503 5.5.1 bad sequence of commands\r\n"),
        FB_TEST_EXPECT("503 5.5.1 bad sequence of commands\r\n"),
        FB_TEST_SAY("MAIL FROM:a\r\nMAIL FROM:<a b>\r\nMAIL FROM:<a> SIZE=65537\r\n"),
        FB_TEST_EXPECT("501 5.5.4 MAIL FROM:<address> is expected\r\n"),
        FB_TEST_EXPECT("501 5.5.4 MAIL FROM:<address> is expected\r\n"),
        FB_TEST_EXPECT("552 5.3.4 the message is too large\r\n"),
        FB_TEST_SAY("MAIL FROM:<>\r\nRCPT TO:<>\r\nRSET\r\nDATA\r\nNOOP\r\nVRFY x\r\nEXPN x\r\n"),
        FB_TEST_EXPECT("250 2.1.0 ok\r\n501 5.5.4 RCPT TO:<address> is expected\r\n"),
        FB_TEST_EXPECT("250 2.0.0 ok\r\n503 5.5.1 bad sequence of commands\r\n250 2.0.0 ok\r\n"),
        FB_TEST_EXPECT("252 2.5.0 try to send something\r\n500 5.5.2 the command is unknown\r\n"),
        FB_TEST_SAY("STARTTLS\r\n"),
        FB_TEST_EXPECT("454 4.7.0 TLS is not available\r\n"),
        FB_TEST_SAY("MAIL FROM:<a>\r\n"),
        FB_TEST_EXPECT("250 2.1.0 ok\r\n"),
        FB_TEST_DRAIN(0),
        FB_TEST_SAY("RSET\r\n"),
        FB_TEST_EXPECT("250 2.0.0 ok\r\n421 4.3.2 the service shuts down\r\n"),
        FB_TEST_EXPECT_CLOSED(),
    };

    ck_assert_int_eq(converse("smtp;", FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(a_message_has_a_size)
{
    static const fb_test_step script[] = {
        FB_TEST_EXPECT(GREETING),
        FB_TEST_SAY("HELO c\r\nMAIL FROM:<a>\r\nRCPT TO:<b>\r\nDATA\r\n"),
        FB_TEST_EXPECT_ANY(15 + 14 + 14 + 35),
        FB_TEST_SAY_BYTES(NULL, 0),
        FB_TEST_SAY("\r\n.\r\n"),
        FB_TEST_EXPECT("552 5.3.4 the message is too large\r\n"),
    };
    static char line[1000];
    fb_test_step with[sizeof(script) / sizeof(script[0])];

    memcpy(with, script, sizeof(script));
    memset(line, 'x', sizeof(line));
    with[3] = (fb_test_step)FB_TEST_SAY_BYTES(line, sizeof(line));
    with[4] = (fb_test_step)FB_TEST_SAY("\r\n0123456789012345678901\r\n.\r\n");
    ck_assert_int_eq(converse("smtp; smtp_max_size 1k;", FB_TEST_SCRIPT(with)), 0);
    with[4] = (fb_test_step)FB_TEST_SAY("\r\n01234567890123456789\r\n.\r\n");
    with[5] = (fb_test_step)FB_TEST_EXPECT("250 2.0.0 accepted\r\n");
    ck_assert_int_eq(converse("smtp; smtp_max_size 1k;", FB_TEST_SCRIPT(with)), 0);
}
END_TEST

START_TEST(a_session_goes_on_with_tls)
{
    static const fb_test_step script[] = {
        FB_TEST_EXPECT(GREETING),
        FB_TEST_SAY("EHLO client\r\nMAIL FROM:<a@test>\r\n"),
        FB_TEST_EXPECT(OFFERING_EHLO "530 5.7.0 must issue a STARTTLS command first\r\n"),
        FB_TEST_SAY("STARTTLS now\r\nSTARTTLS\r\n"),
        FB_TEST_EXPECT("501 5.5.4 no parameters are allowed\r\n" READY),
        FB_TEST_TLS("sni=mail.test"),
        FB_TEST_SAY("MAIL FROM:<a@test>\r\n"),
        FB_TEST_EXPECT("503 5.5.1 bad sequence of commands\r\n"),
        FB_TEST_SAY("EHLO client\r\nSTARTTLS\r\n"),
        FB_TEST_EXPECT(PLAIN_EHLO "454 4.7.0 TLS is not available\r\n"),
        FB_TEST_SAY("MAIL FROM:<a@test>\r\nRCPT TO:<b@test>\r\nDATA\r\n"),
        FB_TEST_EXPECT("250 2.1.0 ok\r\n250 2.1.5 ok\r\n"),
        FB_TEST_EXPECT("354 end with a line that is a dot\r\n"),
        FB_TEST_KEY_UPDATE(1),
        FB_TEST_SAY("hello\r\n.\r\nQUIT\r\n"),
        FB_TEST_EXPECT("250 2.0.0 accepted\r\n221 2.0.0 bye\r\n"),
        FB_TEST_EXPECT_CLOSED(),
    };

    if (fb_test_has_tls())
        ck_assert_int_eq(converse("smtp; smtp_require_tls on; " PAIR, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

/* Commands sent along with STARTTLS in plain are never carried out. */
START_TEST(plain_commands_do_not_follow)
{
    static const fb_test_step script[] = {
        FB_TEST_EXPECT(GREETING),
        FB_TEST_SAY("STARTTLS\r\nMAIL FROM:<a@test>\r\n"),
        FB_TEST_EXPECT(READY),
        FB_TEST_EXPECT_ANY(7), /* an alert */
        FB_TEST_EXPECT_CLOSED(),
    };

    if (fb_test_has_tls())
        ck_assert_int_eq(converse("smtp; " PAIR, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_message_is_taken);
    tcase_add_test(tcase, commands_have_an_order);
    tcase_add_test(tcase, a_message_has_a_size);
    tcase_add_test(tcase, a_session_goes_on_with_tls);
    tcase_add_test(tcase, plain_commands_do_not_follow);
}

TEST_MAIN("smtp", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* proxy_starttls, and servers whose protocol starts TLS. */
#include "settings/loading.h"
#include "support/test.h"

#define BEGIN "events { } stream { "
#define PASS "listen 1; proxy_pass 127.0.0.1:25; "
#define PAIR "ssl_certificate a.pem; ssl_certificate_key a.key; "

static struct loading loading;

static void begin(void)
{
    loading_begin(&loading);
}

static void end(void)
{
    loading_end(&loading);
}

START_TEST(values_are_checked)
{
    refuse_text(&loading, BEGIN "server { " PASS "proxy_starttls ldap; } }",
        "expected off, smtp, imap, pop3 or postgres, not \"ldap\" in /main:1:65\n");
    refuse_text(&loading, BEGIN "server { " PASS "proxy_starttls pop3 no; } }",
        "expected optional, not \"no\" in /main:1:65\n");
    accept_text(&loading, BEGIN "server { " PASS "proxy_starttls off; } }", "");
}
END_TEST

#if HAVE_OPENSSL

START_TEST(a_certificate_is_needed)
{
    static const char *const accepted[] = {
        BEGIN "proxy_starttls smtp; server { " PASS PAIR "} }",
        BEGIN PAIR "server { " PASS "proxy_starttls postgres optional; } }",
        BEGIN "proxy_starttls imap; server { " PASS "proxy_starttls off; } }",
    };

    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
        accept_text(&loading, accepted[i], "");
        ck_assert_int_eq(loading_server(&loading, 0)->tls != NULL, i < 2);
    }
    refuse_text(&loading, BEGIN "server { " PASS "proxy_starttls imap; } }",
        "no \"ssl_certificate\" is defined for protocol \"proxy\", which starts TLS in "
        "/main:1:21\n");
}
END_TEST

#else

START_TEST(a_certificate_is_needed)
{
    refuse_text(&loading, BEGIN "server { " PASS "proxy_starttls imap; } }",
        "protocol \"proxy\" starts TLS, which needs OpenSSL, and this build of forkbeard lacks it "
        "in /main:1:21\n");
}
END_TEST

#endif

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, values_are_checked);
    tcase_add_test(tcase, a_certificate_is_needed);
}

TEST_MAIN("starttls", add_tests)

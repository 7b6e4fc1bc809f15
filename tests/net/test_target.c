/* SPDX-License-Identifier: BSD-2-Clause */
/* Targets of connections: addresses and names, resolved when the configuration is read. */
#include "net/address_parse.h"
#include "support/test.h"

#include "base/compiler.h"

#include <string.h>

static const struct {
    const char *text;
    bool names;
    const char *shown; /* NULL: it is wrong */
    const char *wrong;
} cases[] = {
    { "127.0.0.1:80", true, "127.0.0.1:80", NULL },
    { "127.0.0.1:80", false, "127.0.0.1:80", NULL },
    { "[::1]:65535", true, "[::1]:65535", NULL },
    { "unix:/run/x.sock", true, "unix:/run/x.sock", NULL },
    { "unix:/run/a:b", false, "unix:/run/a:b", NULL },
    { "localhost:81", false, NULL, "invalid IPv4 address" },
    { "", true, NULL, "expected a port" },
    { "80", true, NULL, "expected a port" },
    { "127.0.0.1", true, NULL, "expected a port" },
    { "127.0.0.1:", true, NULL, "expected a port" },
    { "[::1]", true, NULL, "expected a port" },
    { "localhost", true, NULL, "expected a port" },
    { "localhost:", true, NULL, "expected a port" },
    { "*", true, NULL, "expected a port" },
    { "*:80", true, NULL, "expected a host" },
    { ":80", true, NULL, "no host" },
    { "127.0.0.1:0", true, NULL, "port out of range 1 to 65535" },
    { "127.0.0.1:65536", true, NULL, "port out of range 1 to 65535" },
    { "127.0.0.1:80-90", true, NULL, "invalid port" },
    { "localhost:80-90", true, NULL, "invalid port" },
    { "localhost:x", true, NULL, "invalid port" },
    { "127.1:80", true, NULL, "invalid IPv4 address" },
    { "256.0.0.1:80", true, NULL, "invalid IPv4 address" },
    { "http://x:80", true, NULL, "an address has no scheme such as \"tcp://\"" },
    { "::1:80", true, NULL, "more than one \":\", an IPv6 address needs brackets" },
    { "[::1:80", true, NULL, "\"]\" is missing" },
    { "[x]:80", true, NULL, "invalid IPv6 address" },
    { "a b:80", true, NULL, "invalid host" },
    { "unix:", true, NULL, "no path in the unix domain socket" },
};

START_TEST(a_target_is_an_address_with_a_port)
{
    struct fb_target target = { .text = "untouched" };
    const char *wrong = target_parse(cases[_i].text, cases[_i].names, &target);

    if (cases[_i].shown != NULL) {
        ck_assert_msg(wrong == NULL, "\"%s\": %s", cases[_i].text, wrong);
        ck_assert_str_eq(target.text, cases[_i].shown);
        return;
    }
    ck_assert_msg(wrong != NULL, "\"%s\" is accepted", cases[_i].text);
    ck_assert_msg(strcmp(wrong, cases[_i].wrong) == 0, "\"%s\": %s", cases[_i].text, wrong);
    ck_assert_str_eq(target.text, "untouched");
}
END_TEST

/* The machine's own name has an address, under any name. */
START_TEST(a_name_is_resolved)
{
    struct fb_target target;

    ck_assert_ptr_null(target_parse("localhost:81", true, &target));
    ck_assert_msg(strcmp(target.text, "127.0.0.1:81") == 0 || strcmp(target.text, "[::1]:81") == 0,
        "%s", target.text);
    ck_assert_uint_eq(address_port(&target.address), 81);
    ck_assert_str_eq(
        target_parse("no-such-host.invalid:80", true, &target) != NULL ? "refused" : "", "refused");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_target_is_an_address_with_a_port, 0, countof(cases));
    tcase_add_test(tcase, a_name_is_resolved);
}

TEST_MAIN("target", add_tests)

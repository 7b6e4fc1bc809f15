/* SPDX-License-Identifier: BSD-2-Clause */
/* Names in a certificate: accepted names with their kind, and the mistakes of refused names. */
#include "cli/certificate_name.h"

#include "support/test.h"

#include <string.h>

#define LABEL_63 "a23456789012345678901234567890123456789012345678901234567890123"

static const struct {
    const char *text;
    bool is_address;
} accepted[] = {
    { "localhost", false },
    { "example.com", false },
    { "*.example.com", false },
    { "_sip._tcp.Example-1.com", false },
    { "xn--bcher-kva.example", false },
    { "3com.example", false },
    { "1.2.3.4a", false },
    { LABEL_63 ".example", false },
    { LABEL_63 "." LABEL_63 "." LABEL_63 "." LABEL_63, false }, /* the last label is cut to 61 */
    { "127.0.0.1", true },
    { "::1", true },
    { "2001:db8::ffff:192.0.2.1", true },
};

START_TEST(a_name_is_accepted)
{
    char text[300];
    struct certificate_name name;

    snprintf(text, sizeof(text), "%.253s", accepted[_i].text);
    ck_assert_ptr_null(certificate_name_parse(&name, text));
    ck_assert_ptr_eq(name.text, text);
    ck_assert_int_eq(name.is_address, accepted[_i].is_address);
}
END_TEST

static const struct {
    const char *text, *mistake;
} refused[] = {
    { "", "has an empty label" },
    { ".", "has an empty label" },
    { "..", "has an empty label" },
    { "example.com.", "has an empty label" },
    { ".example.com", "has an empty label" },
    { "a..b", "has an empty label" },
    { "*.", "has an empty label" },
    { LABEL_63 "4.example", "has a label of more than 63 characters" },
    { LABEL_63 "." LABEL_63 "." LABEL_63 "." LABEL_63, "has more than 253 characters" },
    { "b\xc3\xbc"
      "cher.example",
        "has a character beyond ASCII: use the form that begins with \"xn--\"" },
    { "*", "has a \"*\" that is not the whole first label" },
    { "w*.example.com", "has a \"*\" that is not the whole first label" },
    { "www.*.com", "has a \"*\" that is not the whole first label" },
    { "*.*.com", "has a \"*\" that is not the whole first label" },
    { "../etc", "has an empty label" },
    { "a/b", "has a character other than letters, digits, \"-\", \"_\" and \".\"" },
    { "a,DNS", "has a character other than letters, digits, \"-\", \"_\" and \".\"" },
    { "a b", "has a character other than letters, digits, \"-\", \"_\" and \".\"" },
    { "a\n", "has a character other than letters, digits, \"-\", \"_\" and \".\"" },
    { "-a.example", "has a label with a \"-\" at an end" },
    { "a-.example", "has a label with a \"-\" at an end" },
    { "-", "has a label with a \"-\" at an end" },
    { "256.0.0.1", "is no IPv4 address, but ends as if it were" },
    { "127.1", "is no IPv4 address, but ends as if it were" },
    { "[::1]", "is neither a DNS name nor an IPv6 address" },
    { "fe80::1%lo", "is neither a DNS name nor an IPv6 address" },
    { "localhost:443", "is neither a DNS name nor an IPv6 address" },
    { "https://example.com", "is neither a DNS name nor an IPv6 address" },
};

START_TEST(a_name_is_refused)
{
    struct certificate_name name;
    const char *mistake = certificate_name_parse(&name, refused[_i].text);

    ck_assert_ptr_nonnull(mistake);
    ck_assert_str_eq(mistake, refused[_i].mistake);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_name_is_accepted, 0, sizeof(accepted) / sizeof(accepted[0]));
    tcase_add_loop_test(tcase, a_name_is_refused, 0, sizeof(refused) / sizeof(refused[0]));
}

TEST_MAIN("certificate_name", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* ClientHellos: the parsed parts, for any pieces and records, and how early other bytes are
 * rejected. The expected results are nginx's for the same bytes. */
#include "features/hello.h"
#include "support/test.h"
#include "tls/hello.h"

#include "base/compiler.h"

#include <stdio.h>

#define BYTES(text) text, sizeof(text) - 1

struct case_of {
    const char *bytes;
    size_t n;
    const char *shown; /* "VERSION NAME PROTOCOLS"; NULL: no ClientHello; "...": more is needed */
};

/* By extensions */
static const struct case_of extensions[] = {
    { BYTES(""), "TLSv1.2  " },
    { BYTES(HELLO_NAME), "TLSv1.2 one.tests " },
    { BYTES(HELLO_PROTOCOLS), "TLSv1.2  h2,http/1.1" },
    { BYTES(HELLO_VERSIONS), "TLSv1.3  " },
    { BYTES(HELLO_NAME HELLO_PROTOCOLS HELLO_VERSIONS), "TLSv1.3 one.tests h2,http/1.1" },
    { BYTES(HELLO_VERSIONS "\xff\xff\0\x03xyz\0\x01\0\0" HELLO_NAME), "TLSv1.3 one.tests " },
    /* names */
    { BYTES("\0\0\0\x05\0\x03\0\0\0"), "TLSv1.2  " },
    { BYTES("\0\0\0\x0b\0\x09\0\0\x01x\0\0\x02yz"), "TLSv1.2 x " }, /* the first of two */
    { BYTES("\0\0\0\x07\0\x05\0\0\x01xy"), "TLSv1.2 x " },
    { BYTES(HELLO_NAME HELLO_OTHER_NAME), NULL },
    { BYTES("\0\0\0\x05\0\x03\0\0\0" HELLO_NAME), NULL },
    { BYTES("\0\0\0\x05\0\x03\x01\0\0"), NULL },
    { BYTES("\0\0\0\x05\0\x02\0\0\0"), NULL },
    { BYTES("\0\0\0\x05\0\x04\0\0\0"), NULL },
    { BYTES("\0\0\0\x04\0\x02\0\0"), NULL },
    { BYTES("\0\0\0\x06\0\x04\0\0\x02x"), NULL },
    { BYTES("\0\0\0\x02\0\0"), NULL },
    { BYTES("\0\0\0\x01\0"), NULL },
    { BYTES("\0\0\0\0"), NULL },
    /* protocols */
    { BYTES("\0\x10\0\x04\0\x02\x01,"), "TLSv1.2  ," },
    { BYTES(HELLO_PROTOCOLS HELLO_PROTOCOLS), NULL },
    { BYTES("\0\x10\0\x02\0\0"), NULL },
    { BYTES("\0\x10\0\x03\0\x01\0"), NULL },
    { BYTES("\0\x10\0\x05\0\x03\x01x\0"), NULL },
    { BYTES("\0\x10\0\x04\0\x02\x02x"), NULL },
    { BYTES("\0\x10\0\x04\0\x01\x01x"), NULL },
    { BYTES("\0\x10\0\0"), NULL },
    /* versions */
    { BYTES("\0\x2b\0\x03\x02\x03\x01"), "TLSv1.3  " },
    { BYTES("\0\x2b\0\x04\x03\x03\x01\0"), "TLSv1.3  " },
    { BYTES(HELLO_VERSIONS HELLO_VERSIONS), "TLSv1.3  " },
    { BYTES("\0\x2b\0\x02\x01\x03"), NULL },
    { BYTES("\0\x2b\0\x03\x04\x03\x01"), NULL },
    { BYTES("\0\x2b\0\x01\0"), NULL },
    { BYTES("\0\x2b\0\0"), NULL },
    /* lengths */
    { BYTES("\0\x07\0\x02x"), NULL },
    { BYTES(HELLO_NAME "\0\x07\0"), NULL },
    { BYTES(HELLO_NAME "\0"), NULL },
};

/* By all bytes */
static const struct case_of beginnings[] = {
    { BYTES(""), "..." },
    { BYTES("GET "), "..." },
    { BYTES("GET /"), NULL },
    { BYTES("\x16"), "..." },
    { BYTES("\x16\x02\x01\0\0"), NULL },
    { BYTES("\x15\x03\x01\0\x02"), NULL },
    { BYTES("\x16\x03\x7f\0\0"), "..." },
    { BYTES("\x16\x03\x01\xff\xff\0"), "..." },
    { BYTES("\x16\x03\x01\0\0GET /"), NULL },
    { BYTES("\x16\x03\x01\0\x03\x02\0\0"), "..." },
    { BYTES("\x16\x03\x01\0\x04\x02\0\0\0"), NULL },
    { BYTES("\x16\x03\x01\0\x04\x01\0\0\x01"), NULL }, /* too short for a version */
    { BYTES("\x16\x03\x01\0\x04\x01\0\0\x02"), "..." },
    { BYTES("\x16\x03\x01\0\x06\x01\0\0\x02\x03\x03"), NULL }, /* for what is random */
    { BYTES("\x80\x2e\x01\x03\x01"), "TLSv1  " },
    { BYTES("\x80\x2e\x01\x03\x03more"), "TLSv1.2  " },
    { BYTES("\xff\xff\x01\0\x02"), "SSLv2  " },
    { BYTES("\x80\x2e\x01\0\x01"), "  " },
    { BYTES("\x80\x2e\x01\x03\x09"), "  " },
    { BYTES("\x80\x2e\x01\x02\0"), NULL },
    { BYTES("\x80\x2e\x04\x03\x01"), NULL },
    { BYTES("\x40\x2e\x01\x03\x01"), NULL },
    { BYTES("\x80\x2e\x01\x03"), "..." },
};

/* Copies a part as text. */
static void show_part(fb_bytes in, struct tls_hello_part part,
    void (*copy)(fb_bytes in, struct tls_hello_part part, uint8_t *out), size_t least, char *out)
{
    uint8_t *text = malloc(part.n + 1);

    ck_assert_ptr_nonnull(text);
    *out = '\0';
    if (part.n > least) {
        copy(in, part, text);
        text[part.n - least] = '\0';
        strcpy(out, (char *)text);
    }
    free(text);
}

static const char *show(const struct tls_hello *hello, fb_bytes in, char text[512])
{
    char name[200], protocols[200];

    if (hello->status == TLS_HELLO_NONE)
        return NULL;
    if (hello->status == TLS_HELLO_MORE)
        return "...";
    show_part(in, hello->name, tls_hello_copy, 0, name);
    show_part(in, hello->protocols, tls_hello_list, 1, protocols);
    snprintf(text, 512, "%s %s %s", tls_hello_version(hello->version), name, protocols);
    return text;
}

/* Parses an exact copy, so a sanitizer knows the end; the copy grows by `piece` bytes a call. */
static void expect(const uint8_t *p, size_t n, size_t piece, const char *expected)
{
    struct tls_hello hello = { .status = TLS_HELLO_MORE };
    const char *shown = NULL;
    char text[512];

    for (size_t come = piece < n ? piece : n;; come += piece < n - come ? piece : n - come) {
        uint8_t *copy = malloc(come + 1);
        fb_bytes in = { copy, come };

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, p, come);
        ck_assert_int_eq(tls_hello_parse(&hello, in), hello.status);
        shown = show(&hello, in, text);
        free(copy);
        if (come == n)
            break;
    }
    ck_assert_pstr_eq(shown, expected);
}

START_TEST(extensions_tell)
{
    const struct case_of *row = &extensions[_i];
    struct hello message = hello_message(row->bytes, row->n);

    for (size_t record = 1; record <= message.n; record++) {
        struct hello hello = hello_records(&message, record);

        expect(hello.p, hello.n, hello.n, row->shown);
        expect(hello.p, hello.n, record, row->shown);
        if (record < 8 || record == message.n)
            expect(hello.p, hello.n, 1, row->shown);
    }
}
END_TEST

START_TEST(beginnings_tell)
{
    const struct case_of *row = &beginnings[_i];

    expect((const uint8_t *)row->bytes, row->n, row->n + 1, row->shown);
    expect((const uint8_t *)row->bytes, row->n, 1, row->shown);
}
END_TEST

START_TEST(less_than_all_is_not_enough)
{
    struct hello hello = hello_of(BYTES(HELLO_NAME HELLO_PROTOCOLS));

    for (size_t n = 0; n < hello.n; n++)
        expect(hello.p, n, n + 1, "...");
    hello_add(&hello, "what follows", 12);
    expect(hello.p, hello.n, hello.n, "TLSv1.2 one.tests h2,http/1.1");
}
END_TEST

START_TEST(versions_have_names)
{
    static const struct {
        uint16_t version;
        const char *name;
    } names[] = { { 0x0002, "SSLv2" }, { 0x0300, "SSLv3" }, { 0x0301, "TLSv1" },
        { 0x0302, "TLSv1.1" }, { 0x0303, "TLSv1.2" }, { 0x0304, "TLSv1.3" }, { 0x0305, "" },
        { 0x0200, "" }, { 0xfeff, "" }, { 0, "" } };

    for (size_t i = 0; i < countof(names); i++) {
        struct hello hello = hello_of("", 0);
        char expected[32];

        ck_assert_str_eq(tls_hello_version(names[i].version), names[i].name);
        hello.p[9] = (uint8_t)(names[i].version >> 8);
        hello.p[10] = (uint8_t)names[i].version;
        snprintf(expected, sizeof(expected), "%s  ", names[i].name);
        expect(hello.p, hello.n, hello.n, expected);
    }
}
END_TEST

START_TEST(a_message_may_lack_extensions)
{
    struct hello message = hello_message("", 0), hello;

    message.n -= 2;
    message.p[3] -= 2;
    hello = hello_records(&message, HELLO_MOST);
    expect(hello.p, hello.n, hello.n, "TLSv1.2  ");

    message.n++;
    message.p[3]++;
    hello = hello_records(&message, HELLO_MOST);
    expect(hello.p, hello.n, hello.n, NULL);
}
END_TEST

START_TEST(lengths_have_to_agree)
{
    struct hello message = hello_message(BYTES(HELLO_NAME)), hello;
    static const size_t lengths[] = { 3, 46 }; /* places: of the message, of the extensions */

    for (size_t i = 0; i < countof(lengths); i++)
        for (int change = -1; change <= 200; change += 1 + (change == 0)) {
            uint8_t before = message.p[lengths[i]];

            message.p[lengths[i]] = (uint8_t)(before + change);
            hello = hello_records(&message, HELLO_MOST);
            if (change == 0)
                expect(hello.p, hello.n, 7, "TLSv1.2 one.tests ");
            else
                expect(hello.p, hello.n, 7, NULL);
            message.p[lengths[i]] = before;
        }
}
END_TEST

START_TEST(what_is_known_is_known_early)
{
    struct hello message = hello_message(BYTES(HELLO_NAME HELLO_PROTOCOLS));
    struct tls_hello known = { .status = TLS_HELLO_MORE };
    struct hello hello;

    message.n = HELLO_BEFORE + 18;
    hello = hello_records(&message, 20);
    ck_assert_int_eq(tls_hello_parse(&known, (fb_bytes) { hello.p, hello.n }), TLS_HELLO_MORE);
    ck_assert_uint_eq(known.version, 0x0303);
    ck_assert_uint_eq(known.name.n, 9);
    ck_assert_uint_eq(known.protocols.n, 0);
    ck_assert_uint_eq(known.at, hello.n);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, extensions_tell, 0, countof(extensions));
    tcase_add_loop_test(tcase, beginnings_tell, 0, countof(beginnings));
    tcase_add_test(tcase, less_than_all_is_not_enough);
    tcase_add_test(tcase, versions_have_names);
    tcase_add_test(tcase, a_message_may_lack_extensions);
    tcase_add_test(tcase, lengths_have_to_agree);
    tcase_add_test(tcase, what_is_known_is_known_early);
}

TEST_MAIN("hello", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Diagnostics that go to another process as JSON arrive as they were. */
#include "base/diag_json.h"

#include "base/log.h"

#include "support/test.h"

#include <string.h>

static void add(
    struct fb_told *diag, uint32_t session, uint32_t level, const char *text, uint32_t line)
{
    fb_told_add(diag, session,
        &(struct fb_telling) {
            .level = level,
            .text = text,
            .text_n = -1,
            .file = line != 0 ? "a.conf" : NULL,
            .excerpt = line != 0 ? "echo on;\n^~~~\n" : NULL,
            .line = line,
            .column = line != 0 ? 5 : 0,
        });
}

START_TEST(messages_survive_json)
{
    struct fb_told *sent = fb_told_create(), *got = fb_told_create();
    uint32_t session = fb_told_begin(sent), other = fb_told_begin(got);
    struct fb_told_line message;
    struct fb_json json;
    size_t n;
    char *text;

    add(sent, session, FB_WARN, "plain \"text\"", 0);
    add(sent, session, FB_EMERG, "placed", 7);
    add(sent, session - 1, FB_EMERG, "of an earlier session", 0);
    fb_json_begin(&json);
    fb_json_object(&json, NULL);
    diag_to_json(&json, sent);
    fb_json_close(&json);
    text = fb_json_end(&json, &n);
    diag_add_json(got, other, fb_json_member(fb_json_parse(text, n), "messages"));
    ck_assert_uint_eq(fb_told_n(got), 2);
    ck_assert(fb_told_get(got, 0, &message));
    ck_assert_uint_eq(message.level, FB_WARN);
    ck_assert_str_eq(message.text, "plain \"text\"");
    ck_assert_uint_eq(message.line, 0);
    ck_assert(fb_told_get(got, 1, &message));
    ck_assert_uint_eq(message.line, 7);
    ck_assert_uint_eq(message.column, 5);
    ck_assert_str_eq(message.file, "a.conf");
    ck_assert_str_eq(message.excerpt, "echo on;\n^~~~\n");
    free(text);
    fb_told_destroy(&sent);
    fb_told_destroy(&got);
}
END_TEST

START_TEST(the_first_grave_message_is_the_reason)
{
    struct fb_told *diag = fb_told_create();
    uint32_t session = fb_told_begin(diag);
    char reason[DIAG_REASON_MAX] = "as before";

    add(diag, session, FB_WARN, "a warning", 0);
    ck_assert(!diag_reason(diag, FB_ALERT, reason, sizeof(reason)));
    ck_assert_str_eq(reason, "as before");
    add(diag, session, FB_EMERG, "first", 7);
    add(diag, session, FB_EMERG, "second", 0);
    ck_assert(diag_reason(diag, FB_ALERT, reason, sizeof(reason)));
    ck_assert_str_eq(reason, "first in a.conf:7:5");
    ck_assert(!diag_reason(NULL, FB_ALERT, reason, sizeof(reason)));
    fb_told_destroy(&diag);
}
END_TEST

START_TEST(nonsense_adds_nothing_false)
{
    static const char text[] = "[7, {}, {\"level\":\"loud\",\"text\":\"x\",\"line\":-1}, \"y\"]";
    struct fb_json_value list = fb_json_parse(text, strlen(text)), at = { NULL, 0 };
    struct fb_told_line message;
    unsigned n = 0;

    for (; diag_from_json(list, &at, &message); n++) {
        ck_assert_uint_eq(message.level, FB_EMERG);
        ck_assert_uint_eq(message.line, 0);
    }
    ck_assert_uint_eq(n, 4);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, messages_survive_json);
    tcase_add_test(tcase, the_first_grave_message_is_the_reason);
    tcase_add_test(tcase, nonsense_adds_nothing_false);
}

FB_TEST_MAIN("diag", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Diagnostics sent to another process as JSON arrive unchanged. */
#include "base/diag.h"
#include "base/json.h"

#include "base/log.h"

#include "support/test.h"

#include <string.h>

static void add(
    struct diag *diag, uint32_t session, uint32_t level, const char *text, uint32_t line)
{
    diag_add(diag, session,
        &(struct diag_text) {
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
    struct diag *sent = diag_create(), *got = diag_create();
    uint32_t session = diag_begin(sent), other = diag_begin(got);
    struct diag_message message;
    struct json json;
    size_t n;
    char *text;

    add(sent, session, LEVEL_WARN, "plain \"text\"", 0);
    add(sent, session, LEVEL_EMERG, "placed", 7);
    add(sent, session - 1, LEVEL_EMERG, "of an earlier session", 0);
    json_begin(&json);
    json_object(&json, NULL);
    diag_to_json(&json, sent);
    json_close(&json);
    text = json_end(&json, &n);
    diag_add_json(got, other, json_member(json_parse(text, n), "messages"));
    ck_assert_uint_eq(diag_count(got), 2);
    ck_assert(diag_get(got, 0, &message));
    ck_assert_uint_eq(message.level, LEVEL_WARN);
    ck_assert_str_eq(message.text, "plain \"text\"");
    ck_assert_uint_eq(message.line, 0);
    ck_assert(diag_get(got, 1, &message));
    ck_assert_uint_eq(message.line, 7);
    ck_assert_uint_eq(message.column, 5);
    ck_assert_str_eq(message.file, "a.conf");
    ck_assert_str_eq(message.excerpt, "echo on;\n^~~~\n");
    free(text);
    diag_destroy(&sent);
    diag_destroy(&got);
}
END_TEST

START_TEST(the_first_grave_message_is_the_reason)
{
    struct diag *diag = diag_create();
    uint32_t session = diag_begin(diag);
    char reason[DIAG_REASON_MAX] = "as before";

    add(diag, session, LEVEL_WARN, "a warning", 0);
    ck_assert(!diag_reason(diag, LEVEL_ALERT, reason, sizeof(reason)));
    ck_assert_str_eq(reason, "as before");
    add(diag, session, LEVEL_EMERG, "first", 7);
    add(diag, session, LEVEL_EMERG, "second", 0);
    ck_assert(diag_reason(diag, LEVEL_ALERT, reason, sizeof(reason)));
    ck_assert_str_eq(reason, "first in a.conf:7:5");
    ck_assert(!diag_reason(NULL, LEVEL_ALERT, reason, sizeof(reason)));
    diag_destroy(&diag);
}
END_TEST

START_TEST(nonsense_adds_nothing_false)
{
    static const char text[] = "[7, {}, {\"level\":\"loud\",\"text\":\"x\",\"line\":-1}, \"y\"]";
    struct json_value list = json_parse(text, strlen(text)), at = { NULL, 0 };
    struct diag_message message;
    unsigned n = 0;

    for (; diag_from_json(list, &at, &message); n++) {
        ck_assert_uint_eq(message.level, LEVEL_EMERG);
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

TEST_MAIN("diag", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines as JSON: members, and valid JSON for every content. */
#include "base/json.h"
#include "base/logged.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The only line as an object, required to be valid. */
static struct json_value object_of(struct logged *logged)
{
    const char *text = logged_text(logged);
    size_t n = strlen(text);
    struct json_value object = json_parse(text, n);

    ck_assert_ptr_eq(strchr(text, '\n'), text + n - 1);
    ck_assert_uint_le(n, 4096);
    ck_assert_msg(object.text != NULL, "no JSON: %s", text);
    ck_assert_int_eq(object.text[0], '{');
    return object;
}

static const char *member(struct json_value object, const char *name)
{
    static char text[8192];

    ck_assert_msg(json_text(json_member(object, name), text, sizeof(text)), "no \"%s\" in %s", name,
        object.text);
    return text;
}

static bool has(struct json_value object, const char *name)
{
    return json_member(object, name).text != NULL;
}

static void begin_json(struct logged *logged)
{
    logged_begin(logged, LEVEL_INFO);
    logged->target.format = LOG_FORMAT_JSON;
}

START_TEST(a_line_has_what_there_is)
{
    const struct log_line line = {
        .level = LEVEL_ERROR,
        .error = ECONNREFUSED,
        .connection = 5,
        .client = "192.0.2.1",
        .server = "0.0.0.0:80",
        .upstream = "unix:/a",
        .protocol = "relay",
    };
    static const char behind[] =
        "\",\"level\":\"error\",\"pid\":123,\"connection\":5,\"message\":\"connect() failed\","
        "\"errno\":111,\"error\":\"Connection refused\",\"client\":\"192.0.2.1\","
        "\"server\":\"0.0.0.0:80\",\"upstream\":\"unix:/a\",\"protocol\":\"relay\"}\n";
    struct logged logged;
    const char *text;

    begin_json(&logged);
    logged_line(&logged, &line, "%s failed", "connect()");
    object_of(&logged);
    text = logged_text(&logged);
    ck_assert_int_eq(strncmp(text, "{\"time\":\"", 9), 0);
    ck_assert_str_eq(text + strlen("{\"time\":\"2026-11-21T09:30:00.123Z"), behind);
    logged_end(&logged);
}
END_TEST

START_TEST(a_line_has_nothing_else)
{
    static const char *const absent[] = { "connection", "errno", "error", "client", "server",
        "upstream", "protocol" };
    struct logged logged;
    struct json_value object;

    begin_json(&logged);
    log_write(&logged.log, LEVEL_NOTICE, 0, "plain");
    object = object_of(&logged);
    ck_assert_str_eq(member(object, "message"), "plain");
    ck_assert_str_eq(member(object, "level"), "notice");
    ck_assert_int_eq(json_integer(json_member(object, "pid"), 0), 123);
    for (size_t i = 0; i < countof(absent); i++)
        ck_assert(!has(object, absent[i]));
    logged_end(&logged);
}
END_TEST

START_TEST(the_time_is_now_and_utc)
{
    struct logged logged;
    struct tm tm = { .tm_isdst = 0 };
    time_t before = time(NULL), at;
    const char *rest;

    setenv("TZ", "Asia/Tokyo", 1);
    tzset();
    begin_json(&logged);
    log_write(&logged.log, LEVEL_NOTICE, 0, "now");
    rest = strptime(member(object_of(&logged), "time"), "%Y-%m-%dT%H:%M:%S", &tm);
    ck_assert_ptr_nonnull(rest);
    ck_assert(strlen(rest) == 5 && rest[0] == '.' && rest[4] == 'Z');
    at = timegm(&tm);
    ck_assert_int_ge(at, before);
    ck_assert_int_le(at, test_second());
    logged_end(&logged);
}
END_TEST

static const struct {
    const char *message, *json;
} escapes[] = {
    { "a\"b\\c/d", "\"a\\\"b\\\\c/d\"" },
    { "\n\r\t", "\"\\n\\r\\t\"" },
    { "\x01\x1f\x1b[31m\x7f", "\"\\u0001\\u001f\\u001b[31m\\u007f\"" },
    { "\xc2\x80\xc2\x9f\xc2\xa0", "\"\\u0080\\u009f\xc2\xa0\"" },
    { "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"" },
    { "a\xff\xfe z", "\"a\\ufffd\\ufffd z\"" },
    { "\xc3", "\"\\ufffd\"" },
    { "\xe2\x82", "\"\\ufffd\\ufffd\"" },
    { "\xc0\x80\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"" },
    { "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" },
    { "", "\"\"" },
};

/* In the message and in the remaining texts. */
START_TEST(texts_are_escaped)
{
    const char *message = escapes[_i].message, *json = escapes[_i].json;
    const struct log_line line = { .level = LEVEL_INFO, .client = message, .protocol = message };
    struct logged logged;
    struct json_value object, value;

    begin_json(&logged);
    logged_line(&logged, &line, "%s", message);
    object = object_of(&logged);
    for (int i = 0; i < 3; i++) {
        value = json_member(object, i == 0 ? "message" : i == 1 ? "client" : "protocol");
        ck_assert_uint_eq(value.n, strlen(json));
        ck_assert_mem_eq(value.text, json, value.n);
    }
    logged_end(&logged);
}
END_TEST

/* Pieces of texts, of every length of the form. */
static const char *const fills[] = { "x", "\"", "\x01", "\xff", "\xc3\xa9", "\xf0\x9f\x98\x80" };

static char *filled(const char *fill, size_t n)
{
    char *text = malloc(n + 1);

    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < n; i++)
        text[i] = fill[i % strlen(fill)];
    text[n] = '\0';
    return text;
}

static void check_length(
    struct logged *logged, const char *fill, size_t n, const struct log_line *line)
{
    struct json_value object;
    char *message = filled(fill, n);

    logged_clear(logged);
    logged_line(logged, line, "%s", message);
    object = object_of(logged);
    ck_assert(has(object, "message"));
    ck_assert_int_eq(has(object, "client"), line->client != NULL);
    ck_assert_int_eq(has(object, "errno"), line->error != 0);
    ck_assert_int_eq(has(object, "column"), line->place != NULL);
    free(message);
}

START_TEST(every_length_is_json)
{
    const struct log_line bare = { .level = LEVEL_INFO };
    char *client = filled(fills[_i], 119);
    const struct log_place place = { .file = client, .line = UINT32_MAX, .column = UINT32_MAX };
    const struct log_line whole = {
        .level = LEVEL_INFO,
        .error = ENETUNREACH,
        .place = &place,
        .connection = UINT64_MAX,
        .client = client,
        .server = client,
        .upstream = client,
        .protocol = client,
    };
    struct logged logged;

    begin_json(&logged);
    for (size_t n = 0; n < 5000; n += n < 300 || n > 3500 ? 1 : 7) {
        check_length(&logged, fills[_i], n, &bare);
        check_length(&logged, fills[_i], n, &whole);
    }
    logged_end(&logged);
    free(client);
}
END_TEST

/* The other texts are cut too, but do not crowd the message out. */
START_TEST(every_length_of_a_context_is_json)
{
    struct logged logged;

    begin_json(&logged);
    for (size_t n = 0; n < 1500; n++) {
        char *text = filled(fills[_i], n);
        const struct log_place place = { .file = text, .line = UINT32_MAX, .column = UINT32_MAX };
        const struct log_line line = {
            .level = LEVEL_INFO,
            .place = &place,
            .error = EPERM,
            .client = text,
            .server = text,
            .upstream = text,
            .protocol = text,
        };

        logged_clear(&logged);
        logged_line(&logged, &line, "a message of the usual length");
        ck_assert_str_eq(member(object_of(&logged), "message"), "a message of the usual length");
        free(text);
    }
    logged_end(&logged);
}
END_TEST

START_TEST(a_long_message_fills_the_line)
{
    struct logged logged;
    char *message = filled("x", 9000);

    begin_json(&logged);
    log_write(&logged.log, LEVEL_INFO, 0, "%s", message);
    ck_assert_uint_eq(strlen(logged_text(&logged)), 4096);
    free(message);
    logged_end(&logged);
}
END_TEST

START_TEST(each_target_has_its_format)
{
    struct logged first, second;
    struct log_target targets[2];
    struct log log;

    begin_json(&first);
    logged_begin(&second, LEVEL_INFO);
    targets[0] = first.target;
    targets[1] = second.target;
    log_init(&log, targets, 2);
    log_write(&log, LEVEL_INFO, 0, "a\tb");
    ck_assert_str_eq(member(object_of(&first), "message"), "a\tb");
    ck_assert_ptr_nonnull(strstr(logged_text(&second), "#0: a\\x09b\n"));
    logged_end(&first);
    logged_end(&second);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_line_has_what_there_is);
    tcase_add_test(tcase, a_line_has_nothing_else);
    tcase_add_test(tcase, the_time_is_now_and_utc);
    tcase_add_loop_test(tcase, texts_are_escaped, 0, countof(escapes));
    tcase_add_loop_test(tcase, every_length_is_json, 0, countof(fills));
    tcase_add_loop_test(tcase, every_length_of_a_context_is_json, 0, countof(fills));
    tcase_add_test(tcase, a_long_message_fills_the_line);
    tcase_add_test(tcase, each_target_has_its_format);
}

TEST_MAIN("log_json", add_tests)

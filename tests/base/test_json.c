/* SPDX-License-Identifier: BSD-2-Clause */
/* The JSON writer and reader: the reader reads the writer's output, and refuses text that is not
 * JSON. */
#include "base/json.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(struct json *json, const char *expected)
{
    size_t n;
    char *text = json_end(json, &n);

    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(n, strlen(expected));
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(values_stand_where_they_were_put)
{
    struct json json;

    json_begin(&json);
    json_object(&json, NULL);
    json_bool(&json, "ok", true);
    json_array(&json, "list");
    json_number(&json, NULL, INT64_MIN);
    json_object(&json, NULL);
    json_close(&json);
    json_array(&json, NULL);
    json_close(&json);
    json_string(&json, NULL, "x");
    json_close(&json);
    json_null(&json, "no");
    json_string(&json, "none", NULL);
    json_bool(&json, "last", false);
    json_close(&json);
    expect(&json, "{\"ok\":true,\"list\":[-9223372036854775808,{},[],\"x\"],\"no\":null,"
                  "\"none\":null,\"last\":false}\n");
}
END_TEST

static const struct {
    const char *text, *written;
} strings[] = {
    { "", "\"\"\n" },
    { "plain /text", "\"plain /text\"\n" },
    { "\"quoted\" \\ back", "\"\\\"quoted\\\" \\\\ back\"\n" },
    { "a\nb\tc\rd", "\"a\\nb\\tc\\rd\"\n" },
    { "\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"\n" },
    { "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x9f",
        "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x9f\"\n" },
    /* no UTF-8: a byte each */
    { "\xff", "\"\\ufffd\"\n" },
    { "\xc3", "\"\\ufffd\"\n" },
    { "\xc3(", "\"\\ufffd(\"\n" },
    { "\xc0\x80", "\"\\ufffd\\ufffd\"\n" },
    { "\xe2\x82", "\"\\ufffd\\ufffd\"\n" },
    { "\xe0\x80\xaf", "\"\\ufffd\\ufffd\\ufffd\"\n" },
    { "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"\n" },
    { "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"\n" },
    { "\xf5z", "\"\\ufffdz\"\n" },
};

START_TEST(a_string_is_escaped)
{
    struct json json;

    json_begin(&json);
    json_string(&json, NULL, strings[_i].text);
    expect(&json, strings[_i].written);
}
END_TEST

START_TEST(a_long_line_is_whole)
{
    struct json json;
    struct json_value array, element = { NULL, 0 };
    size_t n;
    char *text;

    json_begin(&json);
    json_array(&json, NULL);
    for (int i = 0; i < 20000; i++)
        json_number(&json, NULL, i);
    json_close(&json);
    text = json_end(&json, &n);
    ck_assert_ptr_nonnull(text);
    array = json_parse(text, n);
    for (int i = 0; i < 20000; i++) {
        element = json_next(array, element);
        ck_assert_int_eq(json_integer(element, -1), i);
    }
    element = json_next(array, element);
    ck_assert_ptr_null(element.text);
    free(text);
}
END_TEST

static const char *const good[] = { "{}", "[]", " [ ] ", "{\"a\":1}", "{ \"a\" : [ 1 , {} ] }",
    "null", "true", "false", "0", "-0", "-12.5e+3", "1E9", "\"\"", "\"\\u00e9\\/\\\"\"",
    "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]", "{\"a\":1,\"a\":2}", "\t\n\r 1" };

static const char *const bad[] = { "", " ", "{", "}", "[", "]", "{]", "[}", "{\"a\"}", "{\"a\":}",
    "{\"a\":1,}", "[1,]", "[,1]", "[1 2]", "{a:1}", "{1:1}", "nul", "nulll", "truefalse", "01", "-",
    "1.", ".5", "1e", "+1", "0x1", "\"", "\"a", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"",
    "\"\n\"", "'a'", "{} {}", "[1]]", "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]" };

/* In memory of exactly the text's size, so that a sanitizer sees reads behind the end. */
static bool is_good(const char *text)
{
    size_t n = strlen(text);
    char *copy = malloc(n + (n == 0));
    bool is;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, n);
    is = json_parse(copy, n).text != NULL;
    free(copy);
    return is;
}

START_TEST(what_is_well_formed_is_read)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(is_good(good[i]), "%s", good[i]);
}
END_TEST

START_TEST(what_is_not_is_refused)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!is_good(bad[i]), "%s", bad[i]);
}
END_TEST

/* Every beginning of a text is refused, and no byte behind it is looked at. */
START_TEST(a_beginning_is_no_value)
{
    static const char text[] =
        "{\"a\\u00e9\\n\":[-1.5e-3,true,false,null,{\"b\":\"\\ud83d\\udc1f\"}]}";
    char copy[sizeof(text)];

    ck_assert(is_good(text));
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        snprintf(copy, sizeof(copy), "%.*s", (int)n, text);
        ck_assert_msg(!is_good(copy), "%s", copy);
    }
}
END_TEST

static struct json_value parse(const char *text)
{
    return json_parse(text, strlen(text));
}

START_TEST(members_are_found)
{
    struct json_value object =
        parse("{ \"x\" : [1, {\"command\":\"inner\"}], \"command\" : \"status\",\n"
              "\"number\":-7, \"yes\":true, \"no\":false, \"\\u0061\":3, \"command\":\"later\" }");
    char text[16];

    ck_assert(json_text(json_member(object, "command"), text, sizeof(text)));
    ck_assert_str_eq(text, "status");
    ck_assert_int_eq(json_integer(json_member(object, "number"), 0), -7);
    ck_assert_int_eq(json_integer(json_member(object, "a"), 0), 3);
    ck_assert(json_is_true(json_member(object, "yes")));
    ck_assert(!json_is_true(json_member(object, "no")));
    ck_assert(!json_is_true(json_member(object, "none")));
    ck_assert(!json_text(json_member(object, "number"), text, sizeof(text)));
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(json_integer(json_member(object, "command"), 5), 5);
    ck_assert_ptr_null(json_member(parse("[1]"), "command").text);
    ck_assert_ptr_null(json_member(parse("{}"), "command").text);
    ck_assert_ptr_null(json_member(json_member(parse("{}"), "command"), "command").text);
    ck_assert_ptr_null(json_member(json_member(object, "none"), "command").text);
    ck_assert_ptr_null(json_next(object, (struct json_value) { NULL, 0 }).text);
}
END_TEST

START_TEST(members_follow_each_other)
{
    struct json_value none = { NULL, 0 }, member = none,
                      object = parse("{\"a\":1, \"long name\" : {\"b\":2} ,\"c\":3}");
    char name[5];

    member = json_next_member(object, member, name, sizeof(name));
    ck_assert_str_eq(name, "a");
    ck_assert_int_eq(json_integer(member, 0), 1);
    member = json_next_member(object, member, name, sizeof(name));
    ck_assert_str_eq(name, "long"); /* cut */
    ck_assert_int_eq(json_integer(json_member(member, "b"), 0), 2);
    member = json_next_member(object, member, name, sizeof(name));
    ck_assert_str_eq(name, "c");
    ck_assert_ptr_null(json_next_member(object, member, name, sizeof(name)).text);
    ck_assert_ptr_null(json_next_member(parse("{}"), none, name, sizeof(name)).text);
    ck_assert_ptr_null(json_next_member(parse("[1]"), none, name, sizeof(name)).text);
    ck_assert_ptr_null(json_next_member(none, none, name, sizeof(name)).text);
}
END_TEST

static const struct {
    const char *json, *text;
} read_strings[] = {
    { "\"\"", "" },
    { "\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"", "a\"\\/\b\f\n\r\tz" },
    { "\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac" },
    { "\"\\ud83d\\udc1f!\"", "\xf0\x9f\x90\x9f!" },
    { "\"\\ud83d!\"", "\xef\xbf\xbd!" },
    { "\"\\udc1f\"", "\xef\xbf\xbd" },
    { "\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
                            "A" },
    { "\"a\\u0000b\"", "a\xef\xbf\xbd"
                       "b" },
    { "\"0123456789abcdefghi\"", "0123456789abcde" },
    { "\"0123456789abc\\u00e9xyz\"", "0123456789abc\xc3\xa9" },
    { "\"0123456789abcd\\u00e9xyz\"", "0123456789abcd" },
};

START_TEST(a_string_is_read)
{
    char text[16];

    ck_assert(json_text(parse(read_strings[_i].json), text, sizeof(text)));
    ck_assert_str_eq(text, read_strings[_i].text);
}
END_TEST

START_TEST(what_is_written_can_be_read)
{
    struct json json;
    char every[256], text[1024];
    size_t n;
    char *line;

    for (int i = 0; i < 127; i++)
        every[i] = (char)(i + 1);
    every[127] = '\0';
    json_begin(&json);
    json_string(&json, NULL, every);
    line = json_end(&json, &n);
    ck_assert_ptr_nonnull(line);
    ck_assert(json_text(json_parse(line, n), text, sizeof(text)));
    ck_assert_str_eq(text, every);
    free(line);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, values_stand_where_they_were_put);
    tcase_add_loop_test(tcase, a_string_is_escaped, 0, sizeof(strings) / sizeof(strings[0]));
    tcase_add_test(tcase, a_long_line_is_whole);
    tcase_add_test(tcase, what_is_well_formed_is_read);
    tcase_add_test(tcase, what_is_not_is_refused);
    tcase_add_test(tcase, a_beginning_is_no_value);
    tcase_add_test(tcase, members_are_found);
    tcase_add_test(tcase, members_follow_each_other);
    tcase_add_loop_test(tcase, a_string_is_read, 0, sizeof(read_strings) / sizeof(read_strings[0]));
    tcase_add_test(tcase, what_is_written_can_be_read);
}

TEST_MAIN("json", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of several kinds on a connection, and the costs. */
#include "sdk/scripted_conn.h"

#include <stdlib.h>
#include <string.h>

/* The test replaces searches in frames, to count the bytes. */
static uint64_t searched;

void *memmem(const void *haystack, size_t n, const void *needle, size_t needle_n)
{
    const uint8_t *at = haystack;

    for (size_t i = 0; n >= needle_n && i <= n - needle_n; i++) {
        searched++;
        if (memcmp(at + i, needle, needle_n) == 0)
            return (void *)(uintptr_t)(at + i);
    }
    return NULL;
}

static const fb_frame_limit limit = { .most = 4096 };
static struct scripted_conn script;
static fb_test_peer *peer;
static char got[4096];

static fb_test *start_with(size_t (*data)(struct scripted_conn *script, fb_bytes in))
{
    fb_test *test = scripted_start();

    script = (struct scripted_conn) { .data = data };
    peer = scripted_conn_open(test, &script);
    got[0] = '\0';
    return test;
}

static void keep_frame(fb_bytes frame)
{
    strncat(got, (const char *)frame.p, frame.n);
    strcat(got, "|");
}

/* A line with a number, so many bytes, a line ending with ";", a byte with a count. */
static size_t mixed(struct scripted_conn *a, fb_bytes in)
{
    fb_bytes rest = in, frame;
    int more = 1;

    while (more) {
        switch (a->n >> 32) {
        case 0:
            more = fb_frame_until(a->conn, &rest, "\n", 1, &limit, &frame);
            if (more)
                a->n = UINT64_C(1) << 32 | strtoul((const char *)frame.p, NULL, 10);
            break;
        case 1:
            more = fb_frame_fixed(a->conn, &rest, (uint32_t)a->n, &limit, &frame);
            a->n = more ? UINT64_C(2) << 32 : a->n;
            break;
        case 2:
            more = fb_frame_until(a->conn, &rest, ";", 1, &limit, &frame);
            a->n = more ? UINT64_C(3) << 32 : a->n;
            break;
        default:
            more = fb_frame_prefixed(a->conn, &rest, 1, 0, &limit, &frame);
            a->n = more ? 0 : a->n;
        }
        if (more)
            keep_frame(frame);
    }
    return in.n - rest.n;
}

START_TEST(kinds_follow_each_other)
{
    static const char wire[] = "5\nhe;lolin\ne;\x03yes0\n;\x01!12\n;\n;\n;\n;\n;\n;\nend;\x02ok";
    static const char expected[] = "5|he;lo|lin\ne|yes|0|||!|12|;\n;\n;\n;\n;\n;\n|end|ok|";
    fb_test *test = start_with(mixed);

    for (size_t cut = 0; cut < sizeof(wire) - 1; cut++) {
        got[0] = '\0';
        if (cut > 0)
            fb_test_say(peer, wire, cut);
        fb_test_run(test);
        fb_test_say(peer, wire + cut, sizeof(wire) - 1 - cut);
        fb_test_run(test);
        ck_assert_str_eq(got, expected);
    }
    got[0] = '\0';
    for (size_t i = 0; i < sizeof(wire) - 1; i++) {
        fb_test_say(peer, wire + i, 1);
        fb_test_run(test);
    }
    ck_assert_str_eq(got, expected);
    scripted_finish(&test);
}
END_TEST

static const char *delimiter;

static size_t until_delimiter(struct scripted_conn *a, fb_bytes in)
{
    fb_bytes rest = in, frame;

    while (fb_frame_until(a->conn, &rest, delimiter, strlen(delimiter), &limit, &frame))
        keep_frame(frame);
    return in.n - rest.n;
}

/* Bytes searched for a delimiter were not searched for a different delimiter. */
START_TEST(the_delimiter_changes_while_a_frame_is_waited_for)
{
    fb_test *test = start_with(until_delimiter);

    delimiter = "\n";
    fb_test_says(peer, "one;two");
    fb_test_run(test);
    ck_assert_str_eq(got, "");
    delimiter = ";";
    fb_test_says(peer, "x");
    fb_test_run(test);
    ck_assert_str_eq(got, "one|");
    delimiter = "two";
    fb_test_says(peer, "y");
    fb_test_run(test);
    ck_assert_str_eq(got, "one||");
    delimiter = "xy";
    fb_test_says(peer, "z");
    fb_test_run(test);
    ck_assert_str_eq(got, "one|||");
    scripted_finish(&test);
}
END_TEST

/* Looks for two delimiters in turn, in the same bytes and behind. */
static size_t search_twice(struct scripted_conn *a, fb_bytes in)
{
    fb_bytes rest = in, frame;

    if (fb_frame_until(a->conn, &rest, "\n", 1, &limit, &frame) ||
        fb_frame_until(a->conn, &rest, ";", 1, &limit, &frame)) {
        keep_frame(frame);
        return in.n - rest.n;
    }
    if (rest.n < 3)
        return 0;
    rest.p += 3; /* bytes that are discarded */
    rest.n -= 3;
    if (fb_frame_until(a->conn, &rest, ".", 1, &limit, &frame))
        keep_frame(frame);
    return in.n - rest.n;
}

START_TEST(several_searches_in_one_callback)
{
    fb_test *test = start_with(search_twice);

    fb_test_says(peer, "a;");
    fb_test_run(test);
    ck_assert_str_eq(got, "a|");
    fb_test_says(peer, "123b.");
    fb_test_run(test);
    ck_assert_str_eq(got, "a|b|");
    fb_test_says(peer, "12345678");
    fb_test_run(test);
    fb_test_says(peer, ";");
    fb_test_run(test);
    ck_assert_str_eq(got, "a|b|45678|");
    scripted_finish(&test);
}
END_TEST

static fb_frame_limit timed = { .most = 4096, .timeout = 1000 };

/* Lines; "raw" goes on with bytes of no frame. */
static size_t lines_then_raw(struct scripted_conn *a, fb_bytes in)
{
    fb_bytes rest = in, frame;

    if (a->n == 1)
        return 0;
    while (fb_frame_until(a->conn, &rest, "\n", 1, &timed, &frame))
        keep_frame(frame);
    return in.n - rest.n;
}

START_TEST(who_leaves_frames_has_no_timeout)
{
    fb_test *test = start_with(lines_then_raw);

    fb_test_says(peer, "beginning");
    fb_test_pass(test, 500);
    script.n = 1;
    script.data = NULL; /* consumed in some other way */
    fb_test_says(peer, " of a line");
    fb_test_pass(test, 5000);
    ck_assert_uint_eq(script.closings, 0);
    scripted_finish(&test);
}
END_TEST

static size_t pipe_to_other(struct scripted_conn *a, fb_bytes in)
{
    fb_bytes rest = in, frame;

    while (fb_frame_until(a->conn, &rest, "\n", 1, &timed, &frame))
        ;
    fb_pipe(a->conn, a->other->conn, NULL);
    return in.n - rest.n;
}

START_TEST(who_is_piped_has_no_timeout_of_frames)
{
    fb_test *test = start_with(pipe_to_other);
    struct scripted_conn b = { 0 };
    fb_test_peer *other = scripted_conn_open(test, &b);

    script.other = &b;
    fb_test_says(peer, "line\nno line");
    fb_test_pass(test, 5000);
    ck_assert_uint_eq(script.closings, 0);
    ck_assert_str_eq(peer_heard(other), "no line");
    scripted_finish(&test);
}
END_TEST

static void stay_after_end(struct scripted_conn *a, fb_bytes rest)
{
    keep_frame(rest);
    fb_write(a->conn, "incomplete", 10);
}

START_TEST(a_frame_that_never_will_be_whole_has_no_timeout)
{
    fb_test *test = start_with(lines_then_raw);

    script.eof = stay_after_end;
    fb_test_says(peer, "a line without an end");
    fb_test_shut(peer);
    fb_test_pass(test, 5000);
    ck_assert_str_eq(got, "a line without an end|");
    ck_assert_uint_eq(script.closings, 0);
    scripted_finish(&test);
}
END_TEST

START_TEST(who_closes_waits_for_no_frame)
{
    fb_test *test = start_with(lines_then_raw);

    fb_test_take(peer, 0);
    fb_test_says(peer, "a line without an end");
    fb_test_run(test);
    fb_write(script.conn, "goodbye", 7);
    fb_close(script.conn);
    scripted_settle(test);
    fb_test_pass(test, 5000);
    fb_test_take(peer, SIZE_MAX);
    ck_assert_str_eq(peer_heard(peer), "goodbye");
    ck_assert_int_eq(script.reason, FB_FINISHED);
    scripted_finish(&test);
}
END_TEST

START_TEST(who_is_not_listened_to_is_given_time)
{
    fb_test *test = start_with(lines_then_raw);

    fb_test_says(peer, "a li");
    fb_test_run(test);
    fb_stop(script.conn);
    fb_test_says(peer, "ne\nand");
    fb_test_pass(test, 5000);
    fb_resume(script.conn);
    scripted_settle(test);
    ck_assert_str_eq(got, "a line|");
    fb_test_pass(test, 2000);
    ck_assert_int_eq(script.reason, FB_TIMED_OUT);
    scripted_finish(&test);
}
END_TEST

/* ---- Costs ---- */

START_TEST(a_long_frame_is_searched_once)
{
    fb_test *test = start_with(until_delimiter);
    uint64_t asked;

    delimiter = "\r\n";
    searched = 0;
    asked = fb_test_allocations(test);
    for (int i = 0; i < 4000; i++) {
        fb_test_says(peer, "x");
        fb_test_run(test);
    }
    fb_test_says(peer, "\r\n");
    fb_test_run(test);
    ck_assert_uint_eq(strlen(got), 4001);
    ck_assert_uint_le(searched, 3 * 4000);
    ck_assert_uint_le(fb_test_allocations(test) - asked, 20);
    scripted_finish(&test);
}
END_TEST

static size_t count_lines(struct scripted_conn *a, fb_bytes in)
{
    fb_bytes rest = in, frame;

    while (fb_frame_until(a->conn, &rest, "\n", 1, &limit, &frame))
        a->n += frame.n == 2;
    return in.n - rest.n;
}

START_TEST(many_short_frames_in_one_piece)
{
    enum { LINES = 20000 };
    fb_test *test = start_with(count_lines);
    static char wire[3 * LINES];

    for (size_t i = 0; i < sizeof(wire); i++)
        wire[i] = "ab\n"[i % 3];
    searched = 0;
    fb_test_say(peer, wire, sizeof(wire));
    fb_test_run(test);
    ck_assert_uint_eq(script.n, LINES);
    ck_assert_uint_le(searched, sizeof(wire));
    scripted_finish(&test);
}
END_TEST

/* ---- Lengths ---- */

static const fb_frame_layout *layout;

static size_t counted(struct scripted_conn *a, fb_bytes in)
{
    static const fb_frame_limit all = { .most = SIZE_MAX };
    fb_bytes rest = in, frame;

    while (fb_frame_counted(a->conn, &rest, layout, &all, NULL, &frame))
        keep_frame(frame);
    return in.n - rest.n;
}

enum { VARINT_4, VARINT_10, MQTT, POSTGRESQL };

static const fb_frame_layout layouts[] = {
    [VARINT_4] = { .size = sizeof(fb_frame_layout), .width = 4, .varint = 1 },
    [VARINT_10] = { .size = sizeof(fb_frame_layout), .width = 10, .varint = 1 },
    [MQTT] = { .size = sizeof(fb_frame_layout), .before = 1, .width = 4, .varint = 1 },
    [POSTGRESQL] = { .size = sizeof(fb_frame_layout), .before = 1, .width = 4, .counts = 4 },
};

static fb_test *start_layout(int i)
{
    layout = &layouts[i];
    return start_with(counted);
}

/* Lengths forbidden for frames, and the number of bytes needed to see it. */
static const struct {
    int layout;
    const char *wire;
    size_t n, told_by;
} malformed[] = {
    { VARINT_4, "\xff\xff\xff\xffx", 5, 4 },
    { VARINT_4, "\x80\x80\x80\x80x", 5, 4 },
    { VARINT_10, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", 10, 10 },
    { VARINT_10, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", 10, 10 },
    { MQTT, "b\xff\xff\xff\xff\x7f", 6, 5 },
    { POSTGRESQL, "b\0\0\0\3xyz", 8, 5 },
    { POSTGRESQL, "b\0\0\0\0xyz", 8, 5 },
};

START_TEST(a_length_that_makes_no_sense)
{
    bool bytes = _i >= (int)countof(malformed);
    int row = _i % (int)countof(malformed);
    fb_test *test = start_layout(malformed[row].layout);
    size_t n = malformed[row].n, at = 0;

    while (at < n && script.conn != NULL) {
        fb_test_say(peer, malformed[row].wire + at, bytes ? 1 : n);
        fb_test_run(test);
        at += bytes ? 1 : n;
    }
    ck_assert_str_eq(got, "");
    ck_assert_uint_eq(script.closings, 1);
    ck_assert_int_eq(script.reason, FB_BAD_FRAME);
    if (bytes)
        ck_assert_uint_eq(at, malformed[row].told_by);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "the length of a frame makes no sense"));
    scripted_finish(&test);
}
END_TEST

/* A varint may be longer than it need be, and the longest holds 64 bits. */
START_TEST(a_varint_of_any_width)
{
    fb_test *test = start_layout(VARINT_10);

    fb_test_say(peer,
        "\x84\x80\x80\x80\x80\x80\x80\x80\x80\x00"
        "abcd",
        14);
    fb_test_run(test);
    ck_assert_str_eq(got, "abcd|");
    fb_test_say(peer, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
    fb_test_run(test);
    ck_assert_uint_eq(script.closings, 0); /* the rest of the longest frame is awaited */
    scripted_finish(&test);
}
END_TEST

/* A frame may be as long as its head leaves room for, and empty. */
START_TEST(a_number_may_count_no_more_than_the_head)
{
    fb_test *test = start_layout(POSTGRESQL);

    fb_test_say(peer, "b\0\0\0\4b\0\0\0\5x", 11);
    fb_test_run(test);
    ck_assert_str_eq(got, "|x|");
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, kinds_follow_each_other);
    tcase_add_test(tcase, the_delimiter_changes_while_a_frame_is_waited_for);
    tcase_add_test(tcase, several_searches_in_one_callback);
    tcase_add_test(tcase, who_leaves_frames_has_no_timeout);
    tcase_add_test(tcase, who_is_piped_has_no_timeout_of_frames);
    tcase_add_test(tcase, a_frame_that_never_will_be_whole_has_no_timeout);
    tcase_add_test(tcase, who_closes_waits_for_no_frame);
    tcase_add_test(tcase, who_is_not_listened_to_is_given_time);
    tcase_add_test(tcase, a_long_frame_is_searched_once);
    tcase_add_test(tcase, many_short_frames_in_one_piece);
    tcase_add_loop_test(tcase, a_length_that_makes_no_sense, 0, 2 * (int)countof(malformed));
    tcase_add_test(tcase, a_varint_of_any_width);
    tcase_add_test(tcase, a_number_may_count_no_more_than_the_head);
}

TEST_MAIN("sdk_frames_mixed", add_tests)

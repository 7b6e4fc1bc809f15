/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames. */
#include "sdk/scripted_conn.h"

#include <string.h>

/* How a stream of frames is written. */
struct kind {
    const char *delimiter;  /* NULL: the others */
    size_t fixed;           /* 0: prefixed */
    fb_frame_layout layout; /* with a size: of fb_frame_counted(), else of the simpler calls */
};

#define LAYOUT(...)                                                                                \
    {                                                                                              \
        .layout = {.size = sizeof(fb_frame_layout), __VA_ARGS__ }                                  \
    }

static const struct kind kinds[] = {
    { .delimiter = "\n" },
    { .delimiter = "\r\n" },
    { .delimiter = "aab" }, /* a delimiter preceded by its own beginning */
    { .fixed = 4 },
    { .layout = { .width = 1 } },
    { .layout = { .width = 2 } },
    { .layout = { .width = 4 } },
    { .layout = { .width = 8 } },
    { .layout = { .width = 2, .little = 1 } },
    { .layout = { .width = 8, .little = 1 } },
    { .layout = { .width = 3 } },
    { .layout = { .width = 3, .little = 1 } },
    { .layout = { .width = 4, .varint = 1 } },
    { .layout = { .width = 10, .varint = 1 } },
    LAYOUT(.before = 1, .width = 4, .counts = 4), /* PostgreSQL */
    LAYOUT(.width = 3, .little = 1, .after = 1),  /* MySQL */
    LAYOUT(.before = 1, .width = 4, .varint = 1), /* MQTT */
    LAYOUT(.width = 4, .after = 12, .counts = 16),
    LAYOUT(.before = 3, .width = 2), /* TLS */
    LAYOUT(.before = 16, .width = 2, .after = 1, .counts = 19),
};
enum { PREFIXED_4 = 6, PREFIXED_8 = 7, VARINT_4 = 12, MQTT = 16 };
#define KINDS ((int)countof(kinds))

static const struct kind *kind;
static fb_frame_limit limit;
static char frames[8192]; /* frames that came, with a "|" behind each */
static size_t frame_n, frame_total;
static unsigned stop_after; /* frames; 0: never */

/* Bytes of a head equal the head's part of the frame. */
static void check_head(fb_bytes head, const fb_bytes *frame)
{
    const fb_frame_layout *layout = &kind->layout;

    test_require(head.p + head.n == frame->p);
    for (size_t i = 0; i < layout->before; i++)
        test_require(head.p[i] == 'b');
    for (size_t i = head.n - layout->after; i < head.n; i++)
        test_require(head.p[i] == 'a');
}

static int next_counted(fb_conn *conn, fb_bytes *rest, fb_bytes *frame)
{
    fb_bytes head;

    if (!fb_frame_counted(conn, rest, &kind->layout, &limit, &head, frame))
        return 0;
    check_head(head, frame);
    return 1;
}

static int next_frame(fb_conn *conn, fb_bytes *rest, fb_bytes *frame)
{
    const fb_frame_layout *layout = &kind->layout;

    if (kind->delimiter != NULL)
        return fb_frame_until(conn, rest, kind->delimiter, strlen(kind->delimiter), &limit, frame);
    if (kind->fixed > 0)
        return fb_frame_fixed(conn, rest, kind->fixed, &limit, frame);
    if (layout->size > 0)
        return next_counted(conn, rest, frame);
    if (layout->varint)
        return fb_frame_varint(conn, rest, layout->width, &limit, frame);
    return fb_frame_prefixed(conn, rest, layout->width, (int)layout->little, &limit, frame);
}

static void keep_frame(fb_bytes frame)
{
    size_t n = strlen(frames);

    frame_n++;
    frame_total += frame.n;
    if (n + frame.n + 2 > sizeof(frames))
        return;
    memcpy(frames + n, frame.p, frame.n);
    memcpy(frames + n + frame.n, "|", 2);
}

static size_t take_frames(struct scripted_conn *script, fb_bytes in)
{
    fb_bytes rest = in, frame;

    while (next_frame(script->conn, &rest, &frame)) {
        test_require(frame.n == 0 || (frame.p >= in.p && frame.p + frame.n <= in.p + in.n));
        keep_frame(frame);
        if (frame_n == stop_after)
            fb_stop(script->conn);
    }
    return in.n - rest.n;
}

/* Writes the number of a length; returns the width. */
static size_t encode_length(char *to, size_t n)
{
    const fb_frame_layout *layout = &kind->layout;
    size_t at = 0;

    if (layout->varint) {
        for (; n > 0x7f; n >>= 7)
            to[at++] = (char)(n | 0x80);
        to[at++] = (char)n;
        return at;
    }
    for (; at < layout->width; at++)
        to[at] = (char)(uint64_t)(n >> 8 * (layout->little ? at : layout->width - 1 - at));
    return at;
}

/* Writes a frame in wire format; returns the length. */
static size_t encode_frames(char *to, const char *text, size_t n)
{
    size_t at = kind->layout.before;

    memset(to, 'b', at);
    at += encode_length(to + at, n + kind->layout.counts);
    memset(to + at, 'a', kind->layout.after);
    at += kind->layout.after;
    memcpy(to + at, text, n);
    at += n;
    if (kind->delimiter != NULL) {
        memcpy(to + at, kind->delimiter, strlen(kind->delimiter));
        at += strlen(kind->delimiter);
    }
    return at;
}

static struct scripted_conn script;
static fb_test_peer *peer;

static fb_test *start_of(int i)
{
    fb_test *test = scripted_start();

    kind = &kinds[i];
    limit = (fb_frame_limit) { .most = 100 };
    frames[0] = '\0';
    frame_n = frame_total = 0;
    stop_after = 0;
    script = (struct scripted_conn) { .data = take_frames };
    peer = scripted_conn_open(test, &script);
    return test;
}

static const char *const texts[] = { "abcd", "a\r\rx", "aaaa", "\n", "", "12345678901234567890" };

/* Writes the texts as frames of the kind; returns their length on the wire. */
static size_t encode_all(char *wire, char *expected)
{
    size_t n = 0;

    expected[0] = '\0';
    for (size_t i = 0; i < countof(texts); i++) {
        size_t length = strlen(texts[i]);

        if (kind->delimiter != NULL && strstr(texts[i], kind->delimiter) != NULL)
            continue;
        if (kind->fixed > 0 && length != kind->fixed)
            continue;
        n += encode_frames(wire + n, texts[i], length);
        strcat(expected, texts[i]);
        strcat(expected, "|");
    }
    return n;
}

START_TEST(they_come_however_they_are_cut)
{
    fb_test *test = start_of(_i);
    char wire[512], expected[512];
    size_t n = encode_all(wire, expected);

    for (size_t cut = 0; cut <= n; cut++) {
        frames[0] = '\0';
        if (cut > 0)
            fb_test_say(peer, wire, cut);
        fb_test_run(test);
        if (cut < n)
            fb_test_say(peer, wire + cut, n - cut);
        fb_test_run(test);
        ck_assert_str_eq(frames, expected);
    }
    frames[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        fb_test_say(peer, wire + i, 1);
        fb_test_run(test);
    }
    ck_assert_str_eq(frames, expected);
    ck_assert_uint_eq(script.closings, 0);
    scripted_finish(&test);
}
END_TEST

/* A frame of n bytes, at once or byte by byte; whether it came. */
static bool comes(fb_test *test, size_t n, bool bytes)
{
    char text[300], wire[400];
    size_t length;

    memset(text, 'x', sizeof(text));
    length = encode_frames(wire, text, n);
    frame_n = 0;
    frames[0] = '\0';
    if (!bytes)
        fb_test_say(peer, wire, length);
    for (size_t i = 0; bytes && i < length && script.conn != NULL; i++) {
        fb_test_say(peer, wire + i, 1);
        fb_test_run(test);
    }
    fb_test_run(test);
    return frame_n == 1 && strlen(frames) == n + 1;
}

START_TEST(most_is_the_longest)
{
    bool bytes = _i >= KINDS;
    fb_test *test = start_of(_i % KINDS);

    limit.most = kind->fixed > 0 ? kind->fixed : limit.most;
    ck_assert(comes(test, limit.most, bytes));
    ck_assert(comes(test, limit.most, bytes));
    ck_assert_uint_eq(script.closings, 0);
    limit.most -= kind->fixed > 0;
    ck_assert(!comes(test, limit.most + 1, bytes));
    ck_assert_uint_eq(script.closings, 1);
    ck_assert_int_eq(script.reason, FB_INPUT_LIMIT);
    scripted_finish(&test);
}
END_TEST

/* A frame is refused as too long before it has arrived whole. */
START_TEST(what_never_ends_is_too_long)
{
    fb_test *test = start_of(_i);

    frame_n = 0;
    for (int i = 0; i < 101 + (int)strlen(kind->delimiter) && script.conn != NULL; i++) {
        ck_assert_uint_eq(script.closings, 0);
        fb_test_says(peer, "x");
        fb_test_run(test);
    }
    ck_assert_int_eq(script.reason, FB_INPUT_LIMIT);
    scripted_finish(&test);
}
END_TEST

/* A limit that is none. */
START_TEST(most_may_be_all_there_is)
{
    fb_test *test = start_of(_i);

    limit.most = SIZE_MAX;
    ck_assert(comes(test, kind->fixed > 0 ? kind->fixed : 200, true));
    ck_assert(comes(test, kind->fixed > 0 ? kind->fixed : 200, false));
    ck_assert_uint_eq(script.closings, 0);
    scripted_finish(&test);
}
END_TEST

START_TEST(a_length_beyond_all_bounds)
{
    fb_test *test = start_of(PREFIXED_8);

    limit.most = _i == 0 ? 100 : SIZE_MAX;
    fb_test_says(peer, "\xff\xff\xff\xff\xff\xff\xff\xffxyz");
    fb_test_run(test);
    ck_assert_uint_eq(frame_n, 0);
    if (_i == 0)
        ck_assert_int_eq(script.reason, FB_INPUT_LIMIT);
    else
        ck_assert_uint_eq(script.closings, 0); /* stopped, until resumed */
    scripted_finish(&test);
}
END_TEST

START_TEST(a_frame_may_be_longer_than_other_input)
{
    enum { LONG = 1000000 };
    fb_test *test = start_of(_i);
    static char text[LONG], wire[LONG + 32];
    size_t length;

    memset(text, 'x', LONG);
    length = encode_frames(wire, text, LONG);
    limit.most = LONG;
    for (size_t at = 0; at < length; at += 50000) {
        fb_test_say(peer, wire + at, length - at < 50000 ? length - at : 50000);
        fb_test_run(test);
    }
    ck_assert_uint_eq(frame_n, 1);
    ck_assert_uint_eq(frame_total, LONG);
    ck_assert_uint_eq(script.closings, 0);
    scripted_finish(&test);
}
END_TEST

/* ---- Time ---- */

START_TEST(a_frame_has_its_time)
{
    fb_test *test = start_of(_i);
    char wire[400];
    size_t n = encode_frames(wire, "abcd", 4);

    limit.timeout = 1000;
    fb_test_pass(test, 5000); /* none has begun */
    fb_test_say(peer, wire, 1);
    fb_test_pass(test, 999);
    fb_test_say(peer, wire + 1, n - 1);
    fb_test_run(test);
    ck_assert_uint_eq(frame_n, 1);
    fb_test_pass(test, 5000);
    ck_assert_uint_eq(script.closings, 0);

    fb_test_say(peer, wire, n); /* the next frame, beginning behind a delimiter */
    fb_test_say(peer, wire, 1);
    fb_test_pass(test, 900);
    fb_test_say(peer, wire + 1, 1); /* a byte of the frame gives no more time */
    fb_test_pass(test, 99);
    ck_assert_uint_eq(script.closings, 0);
    fb_test_pass(test, 1);
    ck_assert_int_eq(script.reason, FB_TIMED_OUT);
    scripted_finish(&test);
}
END_TEST

START_TEST(each_frame_has_a_time_of_its_own)
{
    fb_test *test = start_of(_i);
    char wire[400];
    size_t n = encode_frames(wire, "abcd", 4);

    limit.timeout = 1000;
    fb_test_say(peer, wire, 1);
    for (unsigned i = 1; i < 10; i++) {
        fb_test_pass(test, 900);
        fb_test_say(peer, wire + 1, n - 1); /* the end of a frame and the beginning of the next */
        fb_test_say(peer, wire, 1);
        fb_test_run(test);
        ck_assert_uint_eq(frame_n, i);
    }
    fb_test_pass(test, 1000);
    ck_assert_int_eq(script.reason, FB_TIMED_OUT);
    scripted_finish(&test);
}
END_TEST

/* ---- Stopping ---- */

START_TEST(a_stop_keeps_the_rest)
{
    fb_test *test = start_of(_i);
    char wire[512], expected[512];
    size_t n = encode_all(wire, expected);
    unsigned all = 0;

    for (const char *p = expected; *p != '\0'; p++)
        all += *p == '|';
    for (stop_after = 1; stop_after <= all; stop_after++) {
        frames[0] = '\0';
        frame_n = 0;
        fb_test_say(peer, wire, n);
        fb_test_run(test);
        ck_assert_uint_eq(frame_n, stop_after);
        fb_test_pass(test, 10000);
        fb_resume(script.conn);
        scripted_settle(test);
        ck_assert_str_eq(frames, expected);
    }
    scripted_finish(&test);
}
END_TEST

START_TEST(a_frame_goes_on_after_a_stop)
{
    fb_test *test = start_of(_i);
    char wire[400];
    size_t n = encode_frames(wire, "abcd", 4);

    fb_test_say(peer, wire, n - 1);
    fb_test_run(test);
    fb_stop(script.conn);
    fb_test_say(peer, wire + n - 1, 1);
    fb_test_say(peer, wire, n);
    scripted_settle(test);
    ck_assert_uint_eq(frame_n, 0);
    fb_resume(script.conn);
    scripted_settle(test);
    ck_assert_str_eq(frames, "abcd|abcd|");
    scripted_finish(&test);
}
END_TEST

START_TEST(what_is_left_is_told_at_the_end)
{
    fb_test *test = start_of(_i);
    char wire[400];
    size_t n = encode_frames(wire, "abcd", 4);

    fb_test_say(peer, wire, n);
    fb_test_say(peer, wire, n - 1);
    fb_test_shut(peer);
    fb_test_run(test);
    ck_assert_uint_eq(frame_n, 1);
    ck_assert_uint_eq(script.eofs, 1);
    ck_assert_uint_eq(script.last_n, n - 1);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, they_come_however_they_are_cut, 0, KINDS);
    tcase_add_loop_test(tcase, most_is_the_longest, 0, 2 * KINDS);
    tcase_add_loop_test(tcase, what_never_ends_is_too_long, 0, 3);
    tcase_add_loop_test(tcase, most_may_be_all_there_is, 0, KINDS);
    tcase_add_loop_test(tcase, a_length_beyond_all_bounds, 0, 2);
    tcase_add_loop_test(tcase, a_frame_may_be_longer_than_other_input, 0, 1);
    tcase_add_loop_test(tcase, a_frame_may_be_longer_than_other_input, PREFIXED_4, PREFIXED_8 + 1);
    tcase_add_loop_test(tcase, a_frame_may_be_longer_than_other_input, VARINT_4, MQTT + 2);
    tcase_add_loop_test(tcase, a_frame_has_its_time, 0, KINDS);
    tcase_add_loop_test(tcase, each_frame_has_a_time_of_its_own, 0, KINDS);
    tcase_add_loop_test(tcase, a_stop_keeps_the_rest, 0, KINDS);
    tcase_add_loop_test(tcase, a_frame_goes_on_after_a_stop, 0, KINDS);
    tcase_add_loop_test(tcase, what_is_left_is_told_at_the_end, 0, KINDS);
}

TEST_MAIN("sdk_frames", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The status_page protocol: requests, as a client sees them, and the text of samples. */
#include "protocols/status_page/status_page.h"
#include "support/test.h"

#include <forkbeard/test.h>
#include <stdlib.h>
#include <string.h>

extern const fb_protocol fb_protocol_status_page;

#define HEAD(status, type, n, end)                                                                 \
    "HTTP/1.1 " status "\r\nContent-Type: " type "\r\nContent-Length: " n                          \
    "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n" end "\r\n\r\n"
#define TEXT(status, n, end, body)                                                                 \
    FB_TEST_EXPECT(HEAD(status, "text/plain; charset=utf-8", n, end) body)
#define KEPT "Connection: keep-alive"
#define CLOSED "Connection: close"

#define CONVERSE(script)                                                                           \
    ck_assert_int_eq(                                                                              \
        fb_test_converse(&fb_protocol_status_page, "status_page;", FB_TEST_SCRIPT(script)), 0)

START_TEST(requests_follow_each_other)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
        TEXT("200 OK", "6", KEPT, "alive\n"),
        FB_TEST_SAY("GET /readyz?now HTTP/1.1\r\n\r\nHEAD /readyz HTTP/1.1\r\nHost: a\r\n\r\n"),
        TEXT("200 OK", "6", KEPT, "ready\n"),
        TEXT("200 OK", "6", KEPT, ""),
        FB_TEST_SAY("GET /healthz HTTP/1.1\r\nconnection: Close\r\n\r\n"),
        TEXT("200 OK", "6", CLOSED, "alive\n"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(1),
        FB_TEST_SAY("GET /healthz HTTP/1.1\r\n\r\nGET /readyz HTTP/1.1\r\n\r\n"),
        FB_TEST_SHUT(),
        TEXT("200 OK", "6", KEPT, "alive\n"),
        TEXT("200 OK", "6", KEPT, "ready\n"),
        FB_TEST_EXPECT_CLOSED(),
    };

    CONVERSE(script);
}
END_TEST

START_TEST(old_clients_are_closed)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("GET /healthz HTTP/1.0\r\n\r\n"),
        TEXT("200 OK", "6", CLOSED, "alive\n"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(1),
        FB_TEST_SAY("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
        TEXT("200 OK", "6", KEPT, "alive\n"),
    };

    CONVERSE(script);
}
END_TEST

START_TEST(others_are_refused)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("GET /nowhere HTTP/1.1\r\n\r\n"),
        TEXT("404 Not Found", "62", KEPT,
            "the paths are /, /status.json, /metrics, /healthz and /readyz\n"),
        FB_TEST_SAY("DELETE /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n"),
        TEXT("405 Method Not Allowed", "24", "Allow: GET, HEAD\r\n" KEPT,
            "GET or HEAD is expected\n"),
        FB_TEST_SAY("POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"),
        TEXT("400 Bad Request", "37", CLOSED, "a request without a body is expected\n"),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_PEER(1),
        FB_TEST_SAY("hello\r\n\r\n"),
        TEXT("400 Bad Request", "37", CLOSED, "a request without a body is expected\n"),
        FB_TEST_EXPECT_CLOSED(),
    };

    CONVERSE(script);
}
END_TEST

/* Returns the text of a reply in chunks, which is whole; NULL: it is not. */
static char *unchunk(fb_bytes heard)
{
    static char text[1 << 18], reply[1 << 18];
    char *p, *end;
    size_t n = 0, size;

    ck_assert_uint_lt(heard.n, sizeof(reply));
    memcpy(reply, heard.p, heard.n);
    reply[heard.n] = '\0';
    p = strstr(reply, "\r\n\r\n");
    if (p == NULL)
        return NULL;
    for (p += 4; (size = strtoul(p, &end, 16)) > 0; p = end + 2 + size + 2) {
        if (end + 2 + size + 2 > reply + heard.n)
            return NULL;
        memcpy(text + n, end + 2, size);
        n += size;
    }
    text[n] = '\0';
    return strcmp(p, "0\r\n\r\n") == 0 ? text : NULL;
}

#define LISTENS(net)                                                                               \
    "listen 10." net ".0.1:1; listen 10." net ".0.1:2; listen 10." net ".0.1:3; "                  \
    "listen 10." net ".0.1:4; listen 10." net ".0.1:5; listen 10." net ".0.1:6; "

/* A path, how much it has at least, which is more than may be unsent, and what is in it. */
static const struct {
    const char *request;
    size_t n;
    const char *wanted[3];
} replies[] = {
    { "GET /metrics HTTP/1.1\r\n\r\n", 150000,
        { "# TYPE forkbeard_accepts_total counter\nforkbeard_accepts_total 1\n",
            "\nforkbeard_worker_connections{generation=\"1\",worker=\"0\"} 1\n",
            "forkbeard_listen_session_seconds_count" } },
    { "GET /status.json HTTP/1.1\r\n\r\n", 15000,
        { "{\"schema\":1,\n\"daemon\":[{\"accepts\":1,\"handled\":1,\"requests\":1,",
            "],\n\"workers\":[{\"generation\":\"1\",\"worker\":\"0\",\"connections\":1,",
            ",\"active\":0,\"received_bytes\":0,\"sent_bytes\":0,\"session_seconds\":"
            "{\"count\":0,\"sum\":0.000,\"buckets\":[0,0," } },
    { "GET / HTTP/1.1\r\n\r\n", 15000,
        { "<!DOCTYPE html>\n", "<td data-accepts=\"1\">1",
            "<tr><th scope=\"row\">10.14.0.1:6<td class=\"text\">" } },
};

/* A reply of several pieces is whole: for a reading client, behind the end of the client's half,
 * and for a slow reader. */
START_TEST(numbers_come_whole)
{
    bool slow = _i / 2 % 2 == 1, shuts = _i % 2 == 1;
    fb_test *test = fb_test_start(&fb_protocol_status_page,
        "status_page; " LISTENS("1") LISTENS("2") LISTENS("3") LISTENS("4") LISTENS("5")
            LISTENS("6") LISTENS("7") LISTENS("8") LISTENS("9") LISTENS("10") LISTENS("11")
                LISTENS("12") LISTENS("13") LISTENS("14"));
    fb_test_peer *peer = fb_test_connect(test);
    char *text;

    if (slow)
        fb_test_take(peer, 500);
    fb_test_says(peer, replies[_i / 4].request);
    if (shuts)
        fb_test_shut(peer);
    for (unsigned turn = 0; turn < 2000 && unchunk(fb_test_heard(peer)) == NULL; turn++) {
        fb_test_pass(test, 1);
        if (slow)
            fb_test_take(peer, 500);
    }
    text = unchunk(fb_test_heard(peer));
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_gt(strlen(text), replies[_i / 4].n);
    for (size_t i = 0; i < 3; i++)
        ck_assert_msg(strstr(text, replies[_i / 4].wanted[i]) != NULL, "no %s in %s",
            replies[_i / 4].wanted[i], text);
    ck_assert_int_eq(fb_test_is_closed(peer), shuts);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_draining_worker_is_not_ready)
{
    fb_test *test = fb_test_start(&fb_protocol_status_page, "status_page;");
    fb_test_peer *peer = fb_test_connect(test);

    fb_test_says(peer, "GET /readyz HTTP/1.1\r\nHost: ");
    fb_test_run(test);
    fb_test_drain(test, 10000);
    fb_test_says(peer, "a\r\n\r\n");
    fb_test_run(test);
    ck_assert_int_eq(memcmp(fb_test_heard(peer).p, "HTTP/1.1 503 ", 13), 0);
    ck_assert_int_eq(fb_test_is_closed(peer), 1);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* ---- Text ---- */

struct walk {
    const fb_sample *samples;
    uint32_t n;
};

static struct walk walk;

static int next_sample(fb_worker *worker, fb_sample_cursor *cursor, fb_sample *sample)
{
    (void)worker;
    if (cursor->entry == walk.n) {
        cursor->entry = 0;
        return 0;
    }
    *sample = walk.samples[cursor->entry++];
    return 1;
}

/* A row ends before a sample with another first label. */
static uint32_t next_row(fb_worker *worker, fb_sample_cursor *cursor, fb_sample *samples)
{
    uint32_t n = 0;

    while (next_sample(worker, cursor, &samples[n]) == 1) {
        n++;
        if (cursor->entry == walk.n || n == FB_ROW_MAX ||
            walk.samples[cursor->entry].thing != samples[0].thing ||
            walk.samples[cursor->entry].labels[0].value != samples[0].labels[0].value)
            return n;
    }
    return 0;
}

/* Writes samples as one text; pieces, if not NULL, gets how many these were. */
static char *written(page_writer write, struct page_client client, unsigned *pieces)
{
    static const fb_metrics metrics = {
        .size = sizeof(metrics),
        .next = next_sample,
        .next_row = next_row,
    };
    static struct page_worker own;
    static char text[64 * PAGE_PIECE];
    unsigned count = 0;
    bool more;

    text[0] = '\0';
    own.metrics = &metrics;
    do {
        own.text.n = 0;
        more = write(NULL, &own, &client);
        ck_assert_uint_lt(own.text.n, PAGE_TEXT - 1);
        strncat(text, own.text.p, own.text.n);
        count++;
    } while (more);
    if (pieces != NULL)
        *pieces = count;
    return text;
}

static char *text_of(const fb_sample *samples, uint32_t n, bool open_metrics, unsigned *pieces)
{
    walk = (struct walk) { samples, n };
    return written(page_add_metrics, (struct page_client) { .open_metrics = open_metrics }, pieces);
}

static const char family[] = "bytes_of";

START_TEST(samples_are_text)
{
    static const fb_sample samples[] = {
        { .name = family,
            .help = "Help",
            .unit = "bytes",
            .kind = FB_SAMPLE_COUNTER,
            .value = 7,
            .label_n = 2,
            .labels = { { "a", "x\"y\\z\n" }, { "b", "" } } },
        { .name = family, .help = "Help", .unit = "bytes", .kind = FB_SAMPLE_COUNTER, .value = 8 },
        { .name = "now", .help = "Gauge", .kind = FB_SAMPLE_GAUGE, .value = -1 },
    };

    ck_assert_str_eq(text_of(samples, 3, false, NULL),
        "# HELP bytes_of_bytes_total Help\n# TYPE bytes_of_bytes_total counter\n"
        "bytes_of_bytes_total{a=\"x\\\"y\\\\z?\",b=\"\"} 7\nbytes_of_bytes_total 8\n"
        "# HELP now Gauge\n# TYPE now gauge\nnow -1\n");
    ck_assert_str_eq(text_of(samples, 3, true, NULL),
        "# HELP bytes_of_bytes Help\n# TYPE bytes_of_bytes counter\n# UNIT bytes_of_bytes bytes\n"
        "bytes_of_bytes_total{a=\"x\\\"y\\\\z?\",b=\"\"} 7\nbytes_of_bytes_total 8\n"
        "# HELP now Gauge\n# TYPE now gauge\nnow -1\n# EOF\n");
}
END_TEST

START_TEST(histograms_add_up)
{
    static const fb_sample sample = {
        .name = "t",
        .help = "Times",
        .unit = "seconds",
        .kind = FB_SAMPLE_HISTOGRAM,
        .label_n = 1,
        .labels = { { "l", "v" } },
        .sum = 12034,
        .buckets = { [0] = 1, [1] = 2, [2] = 4, [FB_SAMPLE_BUCKETS - 1] = 8 },
    };
    const char *text = text_of(&sample, 1, false, NULL);

    ck_assert_ptr_nonnull(strstr(text, "\nt_seconds_bucket{l=\"v\",le=\"0.001\"} 1\n"
                                       "t_seconds_bucket{l=\"v\",le=\"0.004\"} 7\n"
                                       "t_seconds_bucket{l=\"v\",le=\"0.016\"} 7\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nt_seconds_bucket{l=\"v\",le=\"67108.864\"} 7\n"
                                       "t_seconds_bucket{l=\"v\",le=\"+Inf\"} 15\n"
                                       "t_seconds_sum{l=\"v\"} 12.034\n"
                                       "t_seconds_count{l=\"v\"} 15\n"));
}
END_TEST

static const char things[] = "things", sent[] = "forkbeard_thing_sent",
                  ended[] = "forkbeard_thing_ended", times[] = "forkbeard_thing_wait";

#define KEYS(a, b)                                                                                 \
    .thing = things, .help = "Help", .key_n = 2, .labels = { { "name", a }, { "at", b }

static const fb_sample rows[] = {
    { .name = sent, .unit = "bytes", .value = 12345, .label_n = 2, KEYS("<a>", "\xc3\xa4") }
},
{
    .name = ended, .value = 3, .label_n = 3, KEYS("<a>", "\xc3\xa4"), { "how", "by&by" }
}
}
,
{
    .name = ended, .value = 4, .label_n = 3, KEYS("<a>", "\xc3\xa4"), { "how", "at \"once\"" }
}
}
,
{
    .name = times, .unit = "seconds", .kind = FB_SAMPLE_HISTOGRAM, .sum = 5000,
    .buckets = { [1] = 90, [12] = 10 }, .label_n = 2, KEYS("<a>", "\xc3\xa4")
}
}
,
{
    .name = sent, .unit = "bytes", .value = 9, .label_n = 2, KEYS("\xe4\x01", "")
}
}
,
}
;

START_TEST(rows_are_objects)
{
    walk = (struct walk) { rows, 5 };
    ck_assert_str_eq(written(page_add_json, (struct page_client) { 0 }, NULL),
        "{\"schema\":1,\n\"things\":[{\"name\":\"<a>\",\"at\":\"\xc3\xa4\",\"sent_bytes\":12345,"
        "\"ended\":{\"by&by\":3,\"at \\\"once\\\"\":4},\"wait_seconds\":{\"count\":100,"
        "\"sum\":5.000,\"buckets\":[0,90,0,0,0,0,0,0,0,0,0,0,10,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}},\n"
        "{\"name\":\"\xef\xbf\xbd?\",\"at\":\"\",\"sent_bytes\":9}]}\n");
}
END_TEST

START_TEST(rows_are_tables)
{
    const char *text;

    walk = (struct walk) { rows, 5 };
    text = written(page_add_html, (struct page_client) { 0 }, NULL);
    text = strstr(text, "<thead>");
    ck_assert_ptr_nonnull(text);
    ck_assert_str_eq(text,
        "<thead><tr><th scope=\"col\" class=\"text\">name"
        "<th scope=\"col\" class=\"text\">at"
        "<th scope=\"col\" title=\"Help\">sent<th scope=\"col\" title=\"Help\">wait"
        "<th scope=\"col\" class=\"text\">by cause or kind</thead>\n<tbody>\n"
        "<tr><th scope=\"row\">&#60;a&#62;<td class=\"text\">\xc3\xa4<td data-sent=\"12345\">12.3 "
        "kB"
        "<td>half &lt; 2 ms, 99 % &lt; 4 s"
        "<td class=\"text parts\">ended: by&#38;by 3, at &#34;once&#34; 4\n"
        "<tr><th scope=\"row\">\xef\xbf\xbd?<td class=\"text\"><td data-sent=\"9\">9 B<td "
        "class=\"text parts\">\n"
        "</tbody></table></section>\n</main>\n</html>\n");
}
END_TEST

#define LITTLE 20

/* The longest row fits behind little rows that nearly fill a piece. */
START_TEST(long_rows_are_whole)
{
    static char quotes[1000], names[LITTLE][2];
    static fb_sample samples[LITTLE + FB_ROW_MAX];
    const char *text;

    memset(quotes, _i == 0 ? '"' : '&', sizeof(quotes) - 1);
    for (unsigned i = 0; i < LITTLE + FB_ROW_MAX; i++) {
        const char *label = i < LITTLE ? names[i] : quotes;

        samples[i] = (fb_sample) { .name = ended,
            .thing = things,
            .kind = _i == 0 && i >= LITTLE ? FB_SAMPLE_HISTOGRAM : FB_SAMPLE_COUNTER,
            .value = INT64_MIN,
            .sum = UINT64_MAX,
            .key_n = 3,
            .label_n = 4,
            .labels = { { "a", label }, { "b", label }, { "c", label }, { "how", label } } };
    }
    walk = (struct walk) { samples, LITTLE + FB_ROW_MAX };
    text = written(_i == 0 ? page_add_json : page_add_html, (struct page_client) { 0 }, NULL);
    ck_assert_ptr_nonnull(strstr(text, _i == 0 ? "}]}\n" : "</html>\n"));
}
END_TEST

/* The longest labels fit behind a piece that is nearly full. */
START_TEST(long_labels_are_cut)
{
    static char quotes[1000];
    fb_sample samples[8];
    unsigned pieces;

    memset(quotes, '"', sizeof(quotes) - 1);
    for (unsigned i = 0; i < 8; i++)
        samples[i] = (fb_sample) { .name = "t",
            .help = "Times",
            .kind = FB_SAMPLE_HISTOGRAM,
            .label_n = 3,
            .labels = { { "a", quotes }, { "b", quotes }, { "c", quotes } } };
    ck_assert_ptr_nonnull(strstr(text_of(samples, 8, true, &pieces), "\n# EOF\n"));
    ck_assert_uint_gt(pieces, 4);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, requests_follow_each_other);
    tcase_add_test(tcase, old_clients_are_closed);
    tcase_add_test(tcase, others_are_refused);
    tcase_add_loop_test(tcase, numbers_come_whole, 0, 12);
    tcase_add_test(tcase, a_draining_worker_is_not_ready);
    tcase_add_test(tcase, samples_are_text);
    tcase_add_test(tcase, histograms_add_up);
    tcase_add_test(tcase, rows_are_objects);
    tcase_add_test(tcase, rows_are_tables);
    tcase_add_loop_test(tcase, long_rows_are_whole, 0, 2);
    tcase_add_test(tcase, long_labels_are_cut);
}

TEST_MAIN("status_page", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between a worker and a keeper: round trips, and refusals of cut and changed messages. */
#include "support/test.h"
#include "tls/message.h"

#include <string.h>

#define NUMBER (7u << TLS_PLACE_BITS | 999)

static uint8_t message[TLS_PART_SIZE_MOST + 1], flight[TLS_FLIGHT_MOST], facts[TLS_FACTS_MOST];

static void put_word(size_t index, uint32_t value)
{
    memcpy(message + index * sizeof(value), &value, sizeof(value));
}

static uint32_t word_at(size_t index)
{
    uint32_t value;

    memcpy(&value, message + index * sizeof(value), sizeof(value));
    return value;
}

#define REQUEST_HEADER 32
#define PART_HEADER 40
/* Words of the headers. */
enum { REQUEST_SERVER, REQUEST_KIND = 2, REQUEST_NUMBER, REQUEST_ROLE };
enum { REQUEST_PROFILE = 5, REQUEST_NAME, REQUEST_PATHS };
enum { PART_NUMBER, PART_MORE, PART_STEP, PART_USED, PART_OUT };
enum { PART_SESSION = 5, PART_PEER, PART_FACTS, PART_TEXT, PART_SEVERE };

/* Starts of a server and a client. */
static const struct tls_start serving = { .profile = 12345 };
static const struct tls_start calling = {
    .role = TLS_CLIENT,
    .profile = 12345,
    .name = { (const uint8_t *)"one.tests", 9 },
    .server = UINT64_MAX,
};

static size_t write_request(enum tls_request_kind kind, const char *in, struct tls_start start)
{
    const struct tls_request request = {
        .kind = kind,
        .number = NUMBER,
        .start = start,
        .in = { (const uint8_t *)in, strlen(in) },
    };

    return tls_message_write_request(&request, message);
}

START_TEST(a_request_comes_back_as_written)
{
    const enum tls_request_kind kind = (enum tls_request_kind)_i;
    const char *in = kind == TLS_CANCEL ? "" : "bytes";
    size_t n = write_request(kind, in, serving);
    struct tls_request request;

    ck_assert_int_eq(tls_message_read_request(&request, message, n), 0);
    ck_assert_int_eq(request.kind, kind);
    ck_assert_uint_eq(request.number, NUMBER);
    ck_assert_uint_eq(request.in.n, strlen(in));
    ck_assert_mem_eq(request.in.p, in, strlen(in));
    ck_assert_int_eq(request.start.role, TLS_SERVER);
    ck_assert_uint_eq(request.start.profile, kind == TLS_BEGIN ? 12345 : 0);
    ck_assert_uint_eq(request.start.name.n, 0);
}
END_TEST

START_TEST(a_client_begins_with_a_name)
{
    static uint8_t name[TLS_NAME_MOST];
    const size_t sizes[] = { 0, 1, TLS_NAME_MOST };
    struct tls_start start = calling;
    struct tls_request request;

    memset(name, 'n', sizeof(name));
    start.name = (fb_bytes) { name, sizes[_i] };
    ck_assert_int_eq(
        tls_message_read_request(&request, message, write_request(TLS_BEGIN, "", start)), 0);
    ck_assert_int_eq(request.start.role, TLS_CLIENT);
    ck_assert_uint_eq(request.start.profile, 12345);
    ck_assert_uint_eq(request.start.server, UINT64_MAX);
    ck_assert_uint_eq(request.start.name.n, sizes[_i]);
    if (sizes[_i] > 0)
        ck_assert_mem_eq(request.start.name.p, name, sizes[_i]);
    ck_assert_uint_eq(request.in.n, 0);
}
END_TEST

START_TEST(a_begin_has_paths)
{
    const char paths[] = "a.crt\0a.key", *in = _i == 0 ? "bytes" : "";
    struct tls_start start = _i == 0 ? serving : calling;
    struct tls_request request;
    size_t n;

    start.paths = (fb_bytes) { (const uint8_t *)paths, sizeof(paths) };
    n = write_request(TLS_BEGIN, in, start);
    ck_assert_int_eq(tls_message_read_request(&request, message, n), 0);
    ck_assert_uint_eq(request.start.paths.n, sizeof(paths));
    ck_assert_mem_eq(request.start.paths.p, paths, sizeof(paths));
    ck_assert_uint_eq(request.in.n, strlen(in));
    ck_assert_mem_eq(request.in.p, in, strlen(in));
    ck_assert_uint_eq(request.start.name.n, start.name.n);
    message[REQUEST_HEADER + sizeof(paths) - 1] = 'x'; /* no end */
    ck_assert_int_eq(tls_message_read_request(&request, message, n), -1);
}
END_TEST

START_TEST(a_name_out_of_range_is_refused)
{
    size_t n = write_request(TLS_BEGIN, "", calling);
    struct tls_request request;

    ck_assert_int_eq(tls_message_read_request(&request, message, n), 0);
    message[n] = 'x'; /* bytes of a peer, for none has come */
    ck_assert_int_eq(tls_message_read_request(&request, message, n + 1), -1);
    ck_assert_int_eq(tls_message_read_request(&request, message, n - 1), -1);
    message[n - 1] = '\0';
    ck_assert_int_eq(tls_message_read_request(&request, message, n), -1);
    memset(message + n - 9, 'n', TLS_NAME_MOST + 1);
    put_word(REQUEST_NAME, TLS_NAME_MOST);
    ck_assert_int_eq(tls_message_read_request(&request, message, n - 9 + TLS_NAME_MOST), 0);
    put_word(REQUEST_NAME, TLS_NAME_MOST + 1);
    ck_assert_int_eq(tls_message_read_request(&request, message, n - 9 + TLS_NAME_MOST + 1), -1);
}
END_TEST

START_TEST(a_request_may_have_many_bytes_and_no_more)
{
    static uint8_t in[TLS_FEED_MOST], paths[TLS_PATHS_MOST];
    const struct tls_request request = { TLS_BEGIN, NUMBER, { .paths = { paths, sizeof(paths) } },
        { in, sizeof(in) } };
    struct tls_request read;
    size_t n = tls_message_write_request(&request, message);

    ck_assert_uint_eq(n, TLS_REQUEST_MOST);
    ck_assert_int_eq(tls_message_read_request(&read, message, n), 0);
    ck_assert_uint_eq(read.in.n, TLS_FEED_MOST);
    ck_assert_uint_eq(read.start.paths.n, TLS_PATHS_MOST);
    ck_assert_int_eq(tls_message_read_request(&read, message, n + 1), -1);
    put_word(REQUEST_PATHS, TLS_PATHS_MOST - 1); /* the peer's bytes are one too many */
    ck_assert_int_eq(tls_message_read_request(&read, message, n), -1);
    put_word(REQUEST_PATHS, TLS_PATHS_MOST + 1);
    ck_assert_int_eq(tls_message_read_request(&read, message, n), -1);
}
END_TEST

START_TEST(a_request_out_of_range_is_refused)
{
    static const struct {
        enum tls_request_kind kind;
        unsigned word;
        uint32_t value;
    } cases[] = {
        { TLS_BEGIN, REQUEST_KIND, 0 },
        { TLS_BEGIN, REQUEST_KIND, 5 },
        { TLS_BEGIN, REQUEST_KIND, UINT32_MAX },
        { TLS_BEGIN, REQUEST_NUMBER, 0 },
        { TLS_BEGIN, REQUEST_NUMBER, 5 },
        { TLS_BEGIN, REQUEST_NUMBER, 1u << TLS_PLACE_BITS | TLS_HANDSHAKES_MOST },
        { TLS_BEGIN, REQUEST_ROLE, 2 },
        { TLS_BEGIN, REQUEST_ROLE, TLS_CLIENT },
        { TLS_BEGIN, REQUEST_SERVER, 1 },
        { TLS_BEGIN, REQUEST_NAME, 5 },
        { TLS_BEGIN, REQUEST_PATHS, 1 },
        { TLS_BEGIN, REQUEST_PATHS, 6 },
        { TLS_FEED, REQUEST_PATHS, 1 },
        { TLS_CANCEL, REQUEST_PATHS, 1 },
        { TLS_FEED, REQUEST_SERVER, 1 },
        { TLS_FEED, REQUEST_NAME, 5 },
        { TLS_TICKET, REQUEST_PROFILE, 1 },
        { TLS_FEED, REQUEST_ROLE, 1 },
        { TLS_FEED, REQUEST_PROFILE, 1 },
        { TLS_CANCEL, REQUEST_PROFILE, 1 },
    };
    const char *in = cases[_i].kind == TLS_CANCEL ? "" : "bytes";
    size_t n = write_request(cases[_i].kind, in, serving);
    struct tls_request request;

    ck_assert_int_eq(tls_message_read_request(&request, message, n), 0);
    put_word(cases[_i].word, cases[_i].value);
    ck_assert_int_eq(tls_message_read_request(&request, message, n), -1);
}
END_TEST
#define REQUEST_CASES 20

START_TEST(a_cut_request_is_refused)
{
    size_t n = write_request(TLS_CANCEL, "", serving);
    struct tls_request request;

    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(tls_message_read_request(&request, message, i), -1);
    message[n] = 'x';
    ck_assert_int_eq(tls_message_read_request(&request, message, n + 1), -1);
}
END_TEST

static struct tls_reply reply_of(size_t out_n)
{
    struct tls_reply reply = { .used = 11, .out = flight, .out_n = out_n };
    struct tls_session *session = &reply.session;

    for (size_t i = 0; i < out_n; i++)
        flight[i] = (uint8_t)(i * 7);
    memset(session, 0xee, sizeof(*session)); /* bytes beside the fields must not be sent */
    session->version = TLS_1_2;
    session->suite = 0xc02b;
    session->group = 29;
    session->resumed = 1;
    session->plain_most = 512;
    session->verify = TLS_VERIFIED_OTHER;
    session->awaits_tickets = 1;
    session->verify_code = -18;
    session->in.sequence = 1;
    session->out.sequence = 2;
    session->session_id_n = 3;
    session->alpn_n = 2;
    session->name_n = 4;
    memcpy(session->alpn, "h2", 2);
    memcpy(session->name, "a.eu", 4);
    reply.peer = (uint8_t *)"certificate";
    reply.peer_n = 11;
    reply.facts = facts;
    reply.facts_n = tls_facts_put(facts, 0, TLS_FACT_SUBJECT, "CN=a", 4);
    reply.facts_n = tls_facts_put(facts, reply.facts_n, TLS_FACT_SERIAL, "0A", 2);
    strcpy(reply.text, "it\nfailed");
    reply.severe = true;
    return reply;
}

START_TEST(a_reply_comes_back_as_written)
{
    const enum tls_step step = (enum tls_step)_i;
    struct tls_reply reply = reply_of(100);
    struct tls_part part;
    size_t n = tls_message_write_part(NUMBER, step, &reply, 0, message);

    ck_assert_int_eq(tls_message_read_part(&part, message, n), 0);
    ck_assert_uint_eq(part.number, NUMBER);
    ck_assert_int_eq(part.step, step);
    ck_assert(!part.more);
    ck_assert_uint_eq(part.used, 11);
    ck_assert_uint_eq(part.out.n, 100);
    ck_assert_mem_eq(part.out.p, flight, 100);
    ck_assert_str_eq(part.text, step == TLS_FAILED ? "it failed" : "");
    ck_assert(part.severe == (step == TLS_FAILED));
    ck_assert_uint_eq(part.peer.n, step == TLS_DONE ? 11 : 0);
    if (step != TLS_DONE)
        return;
    ck_assert_mem_eq(part.peer.p, "certificate", 11);
    ck_assert_uint_eq(part.facts.n, reply.facts_n);
    ck_assert_uint_eq(tls_facts_find(part.facts, TLS_FACT_SERIAL).n, 2);
    ck_assert_uint_eq(part.session.version, TLS_1_2);
    ck_assert_uint_eq(part.session.suite, 0xc02b);
    ck_assert_uint_eq(part.session.group, 29);
    ck_assert_uint_eq(part.session.resumed, 1);
    ck_assert_uint_eq(part.session.plain_most, 512);
    ck_assert_uint_eq(part.session.verify, TLS_VERIFIED_OTHER);
    ck_assert_uint_eq(part.session.awaits_tickets, 1);
    ck_assert_int_eq(part.session.verify_code, -18);
    ck_assert_uint_eq(part.session.in.sequence, 1);
    ck_assert_uint_eq(part.session.out.sequence, 2);
    ck_assert_mem_eq(part.session.in.secret, reply.session.in.secret, TLS_SECRET_MOST);
    ck_assert_mem_eq(part.session.out.key, reply.session.out.key, CIPHER_KEY_MOST);
    ck_assert_mem_eq(part.session.out.iv, reply.session.out.iv, CIPHER_NONCE);
    ck_assert_uint_eq(part.session.session_id_n, 3);
    ck_assert_mem_eq(part.session.alpn, "h2", 2);
    ck_assert_mem_eq(part.session.name, "a.eu", 4);
    /* bytes behind a length are not the sender's memory */
    ck_assert_int_eq(part.session.alpn[2], 0);
    ck_assert_int_eq(part.session.name[254], 0);
    ck_assert_uint_eq(part.session.session_id[3], 0);
}
END_TEST

START_TEST(padding_of_a_session_is_not_sent)
{
    struct tls_reply reply = reply_of(0);
    struct tls_reply other = reply;
    static uint8_t first[TLS_PART_SIZE_MOST];
    size_t n = tls_message_write_part(NUMBER, TLS_DONE, &reply, 0, message);

    memcpy(first, message, n);
    memset(&other.session, 0x11, sizeof(other.session));
    other.session.in = reply.session.in;
    other.session.out = reply.session.out;
    other.session.version = reply.session.version;
    other.session.suite = reply.session.suite;
    other.session.group = reply.session.group;
    other.session.resumed = reply.session.resumed;
    other.session.plain_most = reply.session.plain_most;
    other.session.verify = reply.session.verify;
    other.session.awaits_tickets = reply.session.awaits_tickets;
    other.session.verify_code = reply.session.verify_code;
    other.session.session_id_n = other.session.alpn_n = other.session.name_n = 0;
    reply.session.session_id_n = reply.session.alpn_n = reply.session.name_n = 0;
    n = tls_message_write_part(NUMBER, TLS_DONE, &reply, 0, first);
    ck_assert_uint_eq(tls_message_write_part(NUMBER, TLS_DONE, &other, 0, message), n);
    ck_assert_mem_eq(message, first, n);
}
END_TEST

START_TEST(a_long_flight_goes_in_parts)
{
    struct tls_reply reply = reply_of(2 * TLS_PART_MOST + 1);
    size_t from = 0;
    struct tls_part part;

    for (unsigned parts = 1;; parts++) {
        size_t n = tls_message_write_part(NUMBER, TLS_DONE, &reply, from, message);

        ck_assert_uint_le(n, TLS_PART_SIZE_MOST);
        ck_assert_int_eq(tls_message_read_part(&part, message, n), 0);
        ck_assert_mem_eq(part.out.p, flight + from, part.out.n);
        from += part.out.n;
        if (!part.more) {
            ck_assert_uint_eq(parts, 3);
            break;
        }
        ck_assert_int_eq(part.step, TLS_MORE);
    }
    ck_assert_uint_eq(from, reply.out_n);
    ck_assert_int_eq(part.step, TLS_DONE);
    ck_assert_uint_eq(part.session.version, TLS_1_2);
}
END_TEST

START_TEST(a_cut_or_longer_part_is_refused)
{
    struct tls_reply reply = reply_of(10);
    size_t n = tls_message_write_part(NUMBER, (enum tls_step)_i, &reply, 0, message);
    struct tls_part part;

    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(tls_message_read_part(&part, message, i), -1);
    ck_assert_int_eq(tls_message_read_part(&part, message, n), 0);
    ck_assert_int_eq(tls_message_read_part(&part, message, n + 1), -1);
}
END_TEST

START_TEST(a_part_out_of_range_is_refused)
{
    static const struct {
        enum tls_step step;
        unsigned word;
        uint32_t value;
    } cases[] = {
        { TLS_MORE, PART_NUMBER, 0 },
        { TLS_MORE, PART_NUMBER, 1u << TLS_PLACE_BITS | TLS_HANDSHAKES_MOST },
        { TLS_MORE, PART_MORE, 1 }, /* a part that is not full */
        { TLS_MORE, PART_MORE, 2 },
        { TLS_MORE, PART_STEP, 1 }, /* no session */
        { TLS_DONE, PART_STEP, 0 }, /* a session */
        { TLS_MORE, PART_STEP, 3 },
        { TLS_MORE, PART_USED, TLS_FEED_MOST + 1 },
        { TLS_MORE, PART_OUT, 11 },
        { TLS_MORE, PART_OUT, UINT32_MAX },
        { TLS_DONE, PART_SESSION, 0 },
        { TLS_DONE, PART_PEER, TLS_PEER_MOST + 1 },
        { TLS_DONE, PART_PEER, UINT32_MAX },
        { TLS_DONE, PART_FACTS, TLS_FACTS_MOST + 1 },
        { TLS_DONE, PART_FACTS, UINT32_MAX },
        { TLS_FAILED, PART_TEXT, TLS_TEXT },
        { TLS_FAILED, PART_SEVERE, 2 },
        { TLS_MORE, PART_SEVERE, 1 },
    };
    struct tls_reply reply = reply_of(10);
    size_t n = tls_message_write_part(NUMBER, cases[_i].step, &reply, 0, message);
    struct tls_part part;

    ck_assert_int_eq(tls_message_read_part(&part, message, n), 0);
    put_word(cases[_i].word, cases[_i].value);
    ck_assert_int_eq(tls_message_read_part(&part, message, n), -1);
}
END_TEST
#define PART_CASES 18

/* Changes a field of the session that lies in the message. */
START_TEST(a_session_out_of_range_is_refused)
{
    struct tls_reply reply = reply_of(10);
    size_t n = tls_message_write_part(NUMBER, TLS_DONE, &reply, 0, message);
    struct tls_session session;
    struct tls_part part;

    memcpy(&session, message + PART_HEADER + 10, sizeof(session));
    switch (_i) {
    case 0:
        session.version = 0x0302;
        break;
    case 1:
        session.resumed = 2;
        break;
    case 2:
        session.verify = TLS_VERIFIED_OTHER + 1;
        break;
    case 3:
        session.session_id_n = 33;
        break;
    case 4:
        session.awaits_tickets = 2;
        break;
    default:
        session.name[1] = '\0';
    }
    memcpy(message + PART_HEADER + 10, &session, sizeof(session));
    ck_assert_int_eq(tls_message_read_part(&part, message, n), -1);
}
END_TEST

/* Changes a byte of the facts: another fact, a longer text, a control character. */
START_TEST(facts_out_of_range_are_refused)
{
    static const struct {
        size_t at;
        uint8_t byte;
    } cases[] = { { 0, TLS_FACTS }, { 0, TLS_FACT_SERIAL }, { 1, 1 }, { 2, 5 }, { 2, 0 },
        { 4, '\n' }, { 7, TLS_FACT_SUBJECT } };
    struct tls_reply reply = reply_of(10);
    size_t n = tls_message_write_part(NUMBER, TLS_DONE, &reply, 0, message);
    struct tls_part part;

    ck_assert_int_eq(tls_message_read_part(&part, message, n), 0);
    message[n - reply.facts_n + cases[_i].at] = cases[_i].byte;
    ck_assert_int_eq(tls_message_read_part(&part, message, n), -1);
}
END_TEST
#define FACT_CASES 7

START_TEST(facts_that_do_not_fit_are_left_out)
{
    static char text[TLS_FACTS_MOST];
    size_t n = 0;

    memset(text, 'x', sizeof(text));
    ck_assert_uint_eq(tls_facts_put(facts, 0, TLS_FACT_CIPHERS, text, sizeof(text)), 0);
    ck_assert_uint_eq(tls_facts_put(facts, 0, TLS_FACT_CIPHERS, text, sizeof(text) - 2), 0);
    ck_assert_uint_eq(tls_facts_put(facts, 0, TLS_FACT_CIPHERS, text, 0), 0);
    ck_assert_uint_eq(tls_facts_put(facts, 0, TLS_FACT_SUBJECT, "a\nb", 3), 0);
    n = tls_facts_put(facts, n, TLS_FACT_SUBJECT, "CN=\xc3\xa9", 5);
    ck_assert_uint_eq(n, 8);
    ck_assert_uint_eq(tls_facts_put(facts, n, TLS_FACT_CIPHERS, text, sizeof(text) - n - 2), n);
    n = tls_facts_put(facts, n, TLS_FACT_CIPHERS, text, sizeof(text) - n - 3);
    ck_assert_uint_eq(n, TLS_FACTS_MOST);
    ck_assert_uint_eq(tls_facts_put(facts, n, TLS_FACT_CURVES, "X25519", 6), n);
    ck_assert(tls_facts_check((fb_bytes) { facts, n }));
    ck_assert(!tls_facts_check((fb_bytes) { facts, n - 1 }));
    ck_assert(tls_facts_check((fb_bytes) { facts, 0 }));
    ck_assert_mem_eq(tls_facts_find((fb_bytes) { facts, n }, TLS_FACT_SUBJECT).p, "CN=", 3);
    ck_assert_uint_eq(tls_facts_find((fb_bytes) { facts, n }, TLS_FACT_CURVES).n, 0);
}
END_TEST

START_TEST(a_text_without_an_end_or_with_controls_is_refused)
{
    struct tls_reply reply = reply_of(0);
    struct tls_part part;
    size_t n;

    memset(reply.text, 'x', sizeof(reply.text) - 1);
    reply.text[sizeof(reply.text) - 1] = '\0';
    n = tls_message_write_part(NUMBER, TLS_FAILED, &reply, 0, message);
    ck_assert_uint_eq(word_at(PART_TEXT), TLS_TEXT - 1);
    ck_assert_int_eq(tls_message_read_part(&part, message, n), 0);
    ck_assert_uint_eq(strlen(part.text), TLS_TEXT - 1);
    message[PART_HEADER] = '\n';
    ck_assert_int_eq(tls_message_read_part(&part, message, n), -1);
    message[PART_HEADER] = '\0';
    ck_assert_int_eq(tls_message_read_part(&part, message, n), -1);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_request_comes_back_as_written, TLS_BEGIN, TLS_TICKET + 1);
    tcase_add_loop_test(tcase, a_client_begins_with_a_name, 0, 3);
    tcase_add_loop_test(tcase, a_begin_has_paths, 0, 2);
    tcase_add_test(tcase, a_name_out_of_range_is_refused);
    tcase_add_test(tcase, a_request_may_have_many_bytes_and_no_more);
    tcase_add_loop_test(tcase, a_request_out_of_range_is_refused, 0, REQUEST_CASES);
    tcase_add_test(tcase, a_cut_request_is_refused);
    tcase_add_loop_test(tcase, a_reply_comes_back_as_written, TLS_MORE, TLS_FAILED + 1);
    tcase_add_test(tcase, padding_of_a_session_is_not_sent);
    tcase_add_test(tcase, a_long_flight_goes_in_parts);
    tcase_add_loop_test(tcase, a_cut_or_longer_part_is_refused, TLS_MORE, TLS_FAILED + 1);
    tcase_add_loop_test(tcase, a_part_out_of_range_is_refused, 0, PART_CASES);
    tcase_add_loop_test(tcase, a_session_out_of_range_is_refused, 0, 6);
    tcase_add_loop_test(tcase, facts_out_of_range_are_refused, 0, FACT_CASES);
    tcase_add_test(tcase, facts_that_do_not_fit_are_left_out);
    tcase_add_test(tcase, a_text_without_an_end_or_with_controls_is_refused);
}

TEST_MAIN("message", add_tests)

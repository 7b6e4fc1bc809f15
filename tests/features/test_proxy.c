/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients passed on by a proxy: the header's arrival, the trusted proxies, and the resulting
 * variables. The proxy is 192.0.2.1. */
#include "features/proxy_protocol/proxy_protocol.h"
#include "net/address_parse.h"
#include "session/conn.h"
#include "session/idle.h"
#include "support/fixture.h"
#include "support/server_defaults.h"

#include <errno.h>
#include <string.h>

#define BYTES(text) text, sizeof(text) - 1
#define LINE "PROXY TCP4 203.0.113.9 198.51.100.7 4321 443\r\n"
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define INET "\xcb\0\x71\x09\xc6\x33\x64\x07\x10\xe1\x01\xbb"
#define UNKNOWN "PROXY UNKNOWN\r\n"

static const char *const names[] = { "remote_addr", "remote_port", "realip_remote_addr",
    "realip_remote_port", "proxy_protocol_addr", "proxy_protocol_port",
    "proxy_protocol_server_addr", "proxy_protocol_server_port", "proxy_protocol_tlv_alpn",
    "proxy_protocol_tlv_0x01", "proxy_protocol_tlv_unique_id", "proxy_protocol_tlv_0xeA",
    "proxy_protocol_tlv_ssl_verify", "proxy_protocol_tlv_ssl_version",
    "proxy_protocol_tlv_ssl_0x21", "proxy_protocol_tlv_ssl_0x0021", "proxy_protocol_tlv_0x0001",
    "proxy_protocol_tlv_ssl_cn", "bytes_received", "status", "server_addr" };

static struct proxy_test {
    struct fixture *fixture;
    struct arena *arena;
    struct variables variables;
    struct variable *used[countof(names)];
    struct phase_handler before, after;
    struct address_block trusted;
    unsigned passed, logged;
    char values[countof(names)][64]; /* seen by the log; "-": missing */
} test;

static unsigned note_access(struct fb_conn *conn, const void *arg)
{
    (void)conn;
    (void)arg;
    test.passed++;
    return 0;
}

static unsigned note_log(struct fb_conn *conn, const void *arg)
{
    (void)arg;
    test.logged++;
    for (size_t i = 0; i < countof(names); i++) {
        const struct value *value = variable_value(conn, test.used[i]);

        snprintf(test.values[i], sizeof(test.values[i]), "%.*s", (int)value->n, value->p);
        if (value->state == VALUE_MISSING)
            strcpy(test.values[i], "-");
    }
    return 0;
}

static void begin(void)
{
    struct server *server;

    memset(&test, 0, sizeof(test));
    test.arena = arena_create();
    ck_assert_ptr_nonnull(test.arena);
    RB_INIT(&test.variables.all);
    test.variables.tables = variable_tables();
    for (size_t i = 0; i < countof(names); i++) {
        test.used[i] = variables_add(&test.variables, test.arena, names[i], strlen(names[i]));
        ck_assert_ptr_nonnull(test.used[i]);
        variables_use(&test.variables, test.used[i], NULL);
    }
    test.variables.uses_proxy = true;
    test.before = (struct phase_handler) { .phase = PHASE_ACCESS, .run = note_access };
    test.after = (struct phase_handler) { .phase = PHASE_LOG, .run = note_log };
    test.fixture = fixture_start_stream(2);
    test.fixture->server.script.data = scripted_echo;
    test.fixture->server.binding.ops = &proxy_protocol_ops;
    server = &test.fixture->server.server;
    server->variables = &test.variables;
    server->before = &test.before;
    server->after = &test.after;
}

static void trust(const char *block)
{
    struct proxy_protocol_values *values =
        server_feature(&test.fixture->server.server, FEATURE_PROXY_PROTOCOL);

    ck_assert_ptr_null(address_block_parse(block, &test.trusted));
    values->trusted = (struct trusted_setting) { &test.trusted, 1 };
}

static void end(void)
{
    scripted_end_sessions(test.fixture);
    fixture_stop(test.fixture);
    arena_destroy(&test.arena);
}

static const char *seen(const char *name)
{
    for (size_t i = 0; i < countof(names); i++)
        if (strcmp(names[i], name) == 0)
            return test.values[i];
    ck_abort_msg("no variable %s", name);
}

/* Lets a client connect, send bytes, and go. */
static struct sim_socket *serve(const char *bytes, size_t n)
{
    struct sim_socket *client = scripted_connect(test.fixture);

    if (n > 0)
        sim_say(client, bytes, n);
    fixture_run(test.fixture);
    if (!client->closed) {
        sim_end(client);
        fixture_run(test.fixture);
    }
    ck_assert(client->closed);
    ck_assert_uint_eq(test.logged, 1);
    return client;
}

START_TEST(a_header_may_come_in_parts)
{
    static const char line[] = LINE "hello", block[] = SIGNATURE "\x21\x11\0\x0c" INET "hello";
    const char *bytes = _i == 0 ? line : block;
    size_t size = (_i == 0 ? sizeof(line) : sizeof(block)) - 1, length = size - 5;

    for (size_t n = 0; n <= size; n++) {
        struct scripted_record *record;
        struct sim_socket *client;

        begin();
        trust("192.0.2.0/24");
        record = &test.fixture->server.record;
        client = scripted_connect(test.fixture);
        if (n > 0)
            sim_say(client, bytes, n);
        fixture_run(test.fixture);
        ck_assert_uint_eq(record->openings, n >= length);
        ck_assert_uint_eq(test.passed, n >= length);
        ck_assert_uint_eq(record->datas, n > length);
        if (n < size)
            sim_say(client, bytes + n, size - n);
        fixture_run(test.fixture);
        ck_assert_uint_eq(record->openings, 1);
        ck_assert_str_eq(sim_sent(client), "hello");
        sim_end(client);
        fixture_run(test.fixture);
        ck_assert_uint_eq(record->closings, 1);
        ck_assert_str_eq(seen("bytes_received"), "5");
        ck_assert_str_eq(seen("status"), "200");
        ck_assert_str_eq(seen("remote_addr"), "203.0.113.9");
        ck_assert_str_eq(seen("server_addr"), "192.0.2.7");
        end();
    }
}
END_TEST

START_TEST(a_header_may_come_byte_by_byte)
{
    static const char line[] = LINE "hello";
    struct sim_socket *client;

    begin();
    client = scripted_connect(test.fixture);
    for (const char *p = line; *p != '\0'; p++) {
        sim_say(client, p, 1);
        fixture_run(test.fixture);
    }
    ck_assert_str_eq(sim_sent(client), "hello");
    ck_assert_uint_eq(test.fixture->server.record.datas, 5);
    end();
}
END_TEST

START_TEST(a_broken_header_ends_the_session)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *shown;
    } cases[] = {
        { BYTES("GET / HTTP/1.0\r\n\r\n"), "\"GET / HTTP/1.0\r\n\r\n\"" },
        { BYTES("\x16\x03\0\x01"), "\"\x16\x03\\x00\x01\"" },
        { BYTES("PROXY TCP4 203.0.113.9 198.51.100.7 4321\r\nhello"), "\"PROXY TCP4 203.0.113.9" },
        { BYTES(SIGNATURE "\x31"), "\"\r\n\r\n\\x00\r\nQUIT\n1\"" },
        { BYTES("PROXY TCP4 203"), "\"PROXY TCP4 203\"" }, /* the end follows */
        { BYTES(""), "\"\"" },
    };
    struct sim_socket *client;
    const char *logged;

    for (size_t i = 0; i < countof(cases); i++) {
        begin();
        client = serve(cases[i].bytes, cases[i].n);
        ck_assert_uint_eq(client->sent_n, 0);
        ck_assert_uint_eq(test.passed, 0);
        ck_assert_uint_eq(test.fixture->server.record.openings, 0);
        ck_assert_uint_eq(test.fixture->server.record.closings, 0);
        logged = fixture_logged(test.fixture);
        ck_assert_msg(strstr(logged, "broken header: \"") != NULL &&
                          strstr(logged, " while reading PROXY protocol, client: 192.0.2.1, "
                                         "server: 192.0.2.7:77\n") != NULL,
            "%s", logged);
        ck_assert_str_eq(seen("status"), "400");
        ck_assert_str_eq(seen("bytes_received"), "0");
        ck_assert_str_eq(seen("proxy_protocol_addr"), "-");
        end();
    }
}
END_TEST

START_TEST(a_header_has_its_time)
{
    struct scripted_record *record;
    struct sim_socket *client;

    begin();
    record = &test.fixture->server.record;
    test.fixture->server.server.settings.first_byte_timeout = 10000;
    client = scripted_connect(test.fixture);
    sim_says(client, "PROXY ");
    fixture_pass(test.fixture, 29999);
    sim_says(client, &UNKNOWN[6]);
    fixture_run(test.fixture);
    ck_assert_uint_eq(record->openings, 1);
    fixture_pass(test.fixture, 9999); /* the first byte's begins behind it */
    ck_assert(!client->closed);
    fixture_pass(test.fixture, 1);
    ck_assert(client->closed);
    ck_assert_uint_eq(record->closings, 1);
    fixture_logged(test.fixture);

    client = scripted_connect(test.fixture);
    sim_says(client, "PROXY ");
    fixture_pass(test.fixture, 29999);
    ck_assert(!client->closed);
    fixture_pass(test.fixture, 1);
    ck_assert(client->closed);
    ck_assert_uint_eq(record->openings, 1);
    ck_assert_ptr_nonnull(strstr(fixture_logged(test.fixture),
        "client timed out (110: Connection timed out) while reading PROXY protocol, client"));
    ck_assert_str_eq(seen("status"), "200"); /* nginx has the same */
    ck_assert_str_eq(seen("bytes_received"), "0");
    end();
}
END_TEST

START_TEST(a_reset_leaves_nothing)
{
    struct sim_socket *client;

    begin();
    client = scripted_connect(test.fixture);
    sim_says(client, "PROXY ");
    sim_break(client, ECONNRESET);
    fixture_run(test.fixture);
    ck_assert(client->closed);
    ck_assert_uint_eq(test.fixture->server.record.closings, 0);
    fixture_logged(test.fixture);
    end();
}
END_TEST

START_TEST(a_drain_waits_for_headers)
{
    struct scripted_record *record;
    struct sim_socket *first, *second;

    begin();
    record = &test.fixture->server.record;
    first = scripted_connect(test.fixture);
    second = scripted_connect(test.fixture);
    sim_says(first, "PROXY UNK");
    fixture_run(test.fixture);
    session_drain(test.fixture->stream, 0);
    fixture_settle(test.fixture);
    ck_assert_uint_eq(record->openings, 0);
    sim_says(first, "NOWN\r\nhello");
    fixture_run(test.fixture);
    ck_assert_uint_eq(record->openings, 1);
    ck_assert_str_eq(sim_sent(first), "hello");
    fixture_pass(test.fixture, 30000);
    ck_assert(second->closed && !first->closed);
    fixture_logged(test.fixture);
    end();
}
END_TEST

START_TEST(a_protocol_stops_before_its_first_bytes)
{
    struct sim_socket *client;

    begin();
    test.fixture->server.script.opened = scripted_stop;
    client = scripted_connect(test.fixture);
    sim_says(client, UNKNOWN "hello");
    fixture_run(test.fixture);
    ck_assert_uint_eq(test.fixture->server.record.openings, 1);
    ck_assert_uint_eq(test.fixture->server.record.datas, 0);
    fb_resume(test.fixture->server.record.conn);
    fixture_run(test.fixture);
    ck_assert_str_eq(sim_sent(client), "hello");
    end();
}
END_TEST

static int refuse_client(fb_conn *conn, void *state)
{
    (void)conn;
    (void)state;
    return -1;
}

static unsigned refuse_session(struct fb_conn *conn, const void *arg)
{
    (void)conn;
    (void)arg;
    return STATUS_FORBIDDEN;
}

START_TEST(a_client_is_refused_behind_its_header)
{
    begin();
    test.fixture->server.script.opened = refuse_client;
    serve(BYTES(UNKNOWN "hello"));
    ck_assert_uint_eq(test.fixture->server.record.closings, 1);
    ck_assert_str_eq(seen("bytes_received"), "0");
    end();

    begin();
    test.before.run = refuse_session;
    serve(BYTES(LINE "hello"));
    ck_assert_uint_eq(test.fixture->server.record.openings, 0);
    ck_assert_uint_eq(test.fixture->server.record.closings, 0);
    ck_assert_str_eq(seen("status"), "403");
    ck_assert_str_eq(seen("bytes_received"), "0");
    end();
}
END_TEST

START_TEST(without_memory_there_is_no_session)
{
    struct sim_socket *client;

    for (unsigned n = 0; n < 2; n++) {
        begin();
        client = scripted_connect(test.fixture);
        test.fixture->memory.until_failure = n;
        sim_says(client, LINE "hello");
        fixture_run(test.fixture);
        test.fixture->memory.until_failure = UINT_MAX;
        ck_assert(client->closed);
        ck_assert_uint_eq(
            test.fixture->server.record.openings, test.fixture->server.record.closings);
        fixture_logged(test.fixture);
        end();
    }
}
END_TEST

/* ---- Whose address is believed ---- */

static const struct {
    const char *bytes;
    size_t n;
    const char *trusted, *addr, *port, *told; /* the last: what the header says */
} believed[] = {
    { BYTES(LINE), "192.0.2.1", "203.0.113.9", "4321", "203.0.113.9" },
    { BYTES(LINE), "192.0.2.2", "192.0.2.1", "1234", "203.0.113.9" },
    { BYTES(LINE), "unix:", "192.0.2.1", "1234", "203.0.113.9" },
    { BYTES(LINE), NULL, "192.0.2.1", "1234", "203.0.113.9" },
    { BYTES("PROXY TCP6 2001:0DB8::9 ::1 0 0\r\n"), "192.0.2.1", "2001:db8::9", "",
        "2001:0DB8::9" },
    { BYTES(UNKNOWN), "192.0.2.1", "192.0.2.1", "1234", "-" },
    { BYTES(SIGNATURE "\x21\x11\0\x0c" INET), "0.0.0.0/0", "203.0.113.9", "4321", "203.0.113.9" },
    { BYTES(SIGNATURE "\x20\x11\0\x0c" INET), "0.0.0.0/0", "192.0.2.1", "1234", "-" },
    { BYTES(SIGNATURE "\x21\0\0\0"), "0.0.0.0/0", "192.0.2.1", "1234", "-" },
};

START_TEST(a_trusted_proxy_is_believed)
{
    begin();
    if (believed[_i].trusted != NULL)
        trust(believed[_i].trusted);
    serve(believed[_i].bytes, believed[_i].n);
    ck_assert_str_eq(seen("remote_addr"), believed[_i].addr);
    ck_assert_str_eq(seen("remote_port"), believed[_i].port);
    ck_assert_str_eq(seen("realip_remote_addr"), "192.0.2.1");
    ck_assert_str_eq(seen("realip_remote_port"), "1234");
    ck_assert_str_eq(seen("proxy_protocol_addr"), believed[_i].told);
    ck_assert_str_eq(seen("bytes_received"), "0");
    end();
}
END_TEST

START_TEST(a_unix_socket_is_told_and_not_believed)
{
    char bytes[16 + 216] = SIGNATURE "\x21\x31\0\xd8/run/a";

    begin();
    trust("192.0.2.1");
    serve(bytes, sizeof(bytes));
    ck_assert_str_eq(seen("remote_addr"), "192.0.2.1");
    ck_assert_str_eq(seen("proxy_protocol_addr"), "unix:/run/a");
    ck_assert_str_eq(seen("proxy_protocol_port"), "");
    end();
}
END_TEST

START_TEST(lines_name_the_real_client)
{
    const char *logged;

    begin();
    trust("192.0.2.1");
    serve(BYTES(LINE "hello"));
    logged = fixture_logged_all(test.fixture);
    ck_assert_msg(strstr(logged, "client 192.0.2.1:1234 connected to 192.0.2.7:77\n") != NULL &&
                      strstr(logged, ", client: 203.0.113.9, server: 192.0.2.7:77\n") != NULL &&
                      strstr(logged, "bytes from/to client:5/5") != NULL,
        "%s", logged);
    end();
}
END_TEST

START_TEST(types_are_variables)
{
    begin();
    serve(BYTES(SIGNATURE "\x21\x11\0\x38" INET "\x01\0\x02h2\x05\0\x01z\xea\0\x03own"
                          "\x20\0\x19\x01\0\0\0\x02\x21\0\x07TLSv1.3\x22\0\x07\x61.test."
                          "\x03"));
    ck_assert_str_eq(seen("proxy_protocol_addr"), "203.0.113.9");
    ck_assert_str_eq(seen("proxy_protocol_port"), "4321");
    ck_assert_str_eq(seen("proxy_protocol_server_addr"), "198.51.100.7");
    ck_assert_str_eq(seen("proxy_protocol_server_port"), "443");
    ck_assert_str_eq(seen("proxy_protocol_tlv_alpn"), "h2");
    ck_assert_str_eq(seen("proxy_protocol_tlv_0x01"), "h2");
    ck_assert_str_eq(seen("proxy_protocol_tlv_unique_id"), "z");
    ck_assert_str_eq(seen("proxy_protocol_tlv_0xeA"), "own");
    ck_assert_str_eq(seen("proxy_protocol_tlv_ssl_verify"), "2");
    ck_assert_str_eq(seen("proxy_protocol_tlv_ssl_version"), "TLSv1.3");
    ck_assert_str_eq(seen("proxy_protocol_tlv_ssl_0x21"), "TLSv1.3");
    ck_assert_str_eq(seen("proxy_protocol_tlv_ssl_0x0021"), "TLSv1.3");
    ck_assert_str_eq(seen("proxy_protocol_tlv_0x0001"), "h2");
    ck_assert_str_eq(seen("proxy_protocol_tlv_ssl_cn"), "a.test.");
    end();

    begin();
    serve(BYTES(LINE));
    for (size_t i = 0; i < countof(names); i++)
        if (strncmp(names[i], "proxy_protocol_tlv", 18) == 0)
            ck_assert_str_eq(test.values[i], "-");
    end();
}
END_TEST

START_TEST(a_client_without_a_proxy_is_itself)
{
    begin();
    trust("192.0.2.1");
    test.fixture->server.binding.ops = &session_conn_ops;
    serve(BYTES(LINE));
    ck_assert_str_eq(seen("remote_addr"), "192.0.2.1");
    ck_assert_str_eq(seen("realip_remote_addr"), "192.0.2.1");
    ck_assert_str_eq(seen("realip_remote_port"), "1234");
    ck_assert_str_eq(seen("proxy_protocol_addr"), "-");
    end();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_header_may_come_in_parts, 0, 2);
    tcase_add_test(tcase, a_header_may_come_byte_by_byte);
    tcase_add_test(tcase, a_broken_header_ends_the_session);
    tcase_add_test(tcase, a_header_has_its_time);
    tcase_add_test(tcase, a_reset_leaves_nothing);
    tcase_add_test(tcase, a_drain_waits_for_headers);
    tcase_add_test(tcase, a_protocol_stops_before_its_first_bytes);
    tcase_add_test(tcase, a_client_is_refused_behind_its_header);
    tcase_add_test(tcase, without_memory_there_is_no_session);
    tcase_add_loop_test(tcase, a_trusted_proxy_is_believed, 0, countof(believed));
    tcase_add_test(tcase, a_unix_socket_is_told_and_not_believed);
    tcase_add_test(tcase, lines_name_the_real_client);
    tcase_add_test(tcase, types_are_variables);
    tcase_add_test(tcase, a_client_without_a_proxy_is_itself);
}

TEST_MAIN("proxy", add_tests)

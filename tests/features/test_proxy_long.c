/* SPDX-License-Identifier: BSD-2-Clause */
/* Long headers of the PROXY protocol, kept until they are whole: from trusted proxies only. The
 * client is 192.0.2.1. */
#include "features/proxy_protocol/proxy_protocol.h"
#include "net/address_parse.h"
#include "support/fixture.h"
#include "support/server_defaults.h"

#include <stdlib.h>
#include <string.h>

#define START "\r\n\r\n\0\r\nQUIT\n\x21\x11"
#define LENGTH_AT 14
#define HEAD 16
#define LONGEST (HEAD + 65535)
#define UNTRUSTED                                                                                  \
    "t: [error] *1 a header of %zu bytes while reading PROXY protocol, and 4096 are the "          \
    "most from an address that no \"set_real_ip_from\" names, client: 192.0.2.1, server: "         \
    "192.0.2.7:77\n"

static const struct {
    size_t n, said; /* bytes of the header, and how many come at first */
    bool is_trusted, is_refused;
} rows[] = {
    { 4096, 4096, false, false },
    { 4096, 4095, false, false },
    { 4097, 4097, false, true },
    { 4097, HEAD, false, true },
    { 4097, 4097, true, false },
    { LONGEST, 60000, false, true },
    { LONGEST, 60000, true, false },
};

static struct fixture *start(struct address_block *trusted, bool is_trusted)
{
    struct fixture *fixture = fixture_start_stream(2);
    struct proxy_protocol_values *values =
        server_feature(&fixture->server.server, FEATURE_PROXY_PROTOCOL);

    fixture->server.script.data = scripted_echo;
    fixture->server.binding.ops = &proxy_protocol_ops;
    ck_assert_ptr_null(address_block_parse("192.0.2.0/24", trusted));
    if (is_trusted)
        values->trusted = (struct trusted_setting) { trusted, 1 };
    return fixture;
}

/* A header of so many bytes. */
static uint8_t *make_header(size_t n)
{
    uint8_t *bytes = calloc(1, n);

    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, START, sizeof(START) - 1);
    bytes[LENGTH_AT] = (uint8_t)((n - HEAD) >> 8);
    bytes[LENGTH_AT + 1] = (uint8_t)(n - HEAD);
    return bytes;
}

static void expect_refused(struct fixture *fixture, size_t n)
{
    char line[256];

    snprintf(line, sizeof(line), UNTRUSTED, n);
    ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), line));
    ck_assert_uint_eq(fixture->server.record.openings, 0);
}

START_TEST(long_headers_need_trust)
{
    struct address_block trusted;
    struct fixture *fixture = start(&trusted, rows[_i].is_trusted);
    struct sim_socket *client = scripted_connect(fixture);
    size_t n = rows[_i].n, said = rows[_i].said;
    uint8_t *bytes = make_header(n);

    sim_say(client, bytes, said);
    fixture_run(fixture);
    ck_assert_int_eq(client->closed, rows[_i].is_refused);
    if (rows[_i].is_refused) {
        expect_refused(fixture, n);
    } else {
        if (said < n)
            sim_say(client, bytes + said, n - said);
        fixture_run(fixture);
        ck_assert_uint_eq(fixture->server.record.openings, 1);
    }
    free(bytes);
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, long_headers_need_trust, 0, (int)countof(rows));
}

TEST_MAIN("proxy_long", add_tests)

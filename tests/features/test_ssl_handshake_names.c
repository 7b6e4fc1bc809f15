/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients whose ClientHello chooses the server, before the engine is given a byte. The engine's
 * replies are the test's. */
#include "features/handshakes.h"
#include "features/hello.h"
#include "features/server_name/server_name.h"

#include "features/preread/preread.h"
#include "tls/hello.h"

#include <errno.h>

static struct server_names server_names;
static struct named_server named[2];
static struct binding second;

/* Begins a test of an address with two servers; "one.tests" is the second's name. */
static void begin_names(void)
{
    struct map_table *exact = &server_names.map.exact;

    begin_servers(3, TLS_LINK_HELD);
    server_names = (struct server_names) { .servers = named, .n = 2 };
    exact->kind = MAP_EXACT;
    server_names.map.end.kind = MAP_END;
    server_names.map.begin.kind = MAP_BEGIN;
    ck_assert_int_eq(map_table_add(exact, "one.tests", 9, 1), 1);
    ck_assert_int_eq(map_table_finish(exact, test.arena), 0);
    test.servers[0]->binding.names = &server_names;
    second = test.servers[0]->binding;
    second.server = &test.servers[1]->server;
    named[0].binding = &test.servers[0]->binding;
    named[1].binding = &second;
    add_before(0, PHASE_ACCESS, note_access, NULL);
    add_before(1, PHASE_ACCESS, refuse, NULL); /* is never asked */
    add_handshake(0);
    add_handshake(1);
}

static void finish_hello(const struct tls_client *client, const struct hello *hello, unsigned i)
{
    struct tls_reply reply = { .used = hello->n,
        .session = { .version = TLS_1_3, .plain_most = 1000 } };

    ck_assert_uint_eq(tls_held_n(), 1);
    ck_assert_uint_eq(tls_held_profile(), i);
    tls_reply_held_by(TLS_DONE, &reply);
    fixture_run(test.fixture);
    ck_assert(!client->socket->closed);
}

/* The hello whole, byte by byte, or of small records. */
START_TEST(a_name_chooses_the_server)
{
    static const struct {
        const char *extensions;
        size_t n;
        unsigned server;
    } rows[] = {
        { HELLO_NAME, sizeof(HELLO_NAME) - 1, 1 },
        { HELLO_OTHER_NAME, sizeof(HELLO_OTHER_NAME) - 1, 0 },
        { "", 0, 0 },
    };

    for (size_t i = 0; i < countof(rows); i++) {
        struct hello message = hello_message(rows[i].extensions, rows[i].n);
        struct hello hello = hello_records(&message, _i == 2 ? 7 : HELLO_MOST);
        struct tls_client *client;

        begin_names();
        client = connect_client();
        if (_i > 0)
            for (size_t n = 0; n < hello.n; n++) {
                ck_assert_uint_eq(tls_held_n(), 0);
                sim_say(client->socket, hello.p + n, 1);
                fixture_run(test.fixture);
            }
        else
            sim_say(client->socket, hello.p, hello.n);
        fixture_run(test.fixture);
        finish_hello(client, &hello, rows[i].server);
        ck_assert_uint_eq(test.servers[rows[i].server]->record.openings, 1);
        ck_assert_uint_eq(test.servers[1 - rows[i].server]->record.openings, 0);
        ck_assert_uint_eq(accesses, 1);
        tls_client_destroy(&client);
        end_tls();
    }
}
END_TEST

/* No TLS at all: the engine of the default server says so. */
START_TEST(other_bytes_choose_the_default_server)
{
    static const char *const texts[] = { "GET / HTTP/1.0\r\n\r\n",
        "\x80\x2e\x01\x03\x01 and more" };
    struct tls_client *client;

    begin_names();
    client = connect_client();
    sim_says(client->socket, texts[_i]);
    fixture_run(test.fixture);
    ck_assert_uint_eq(tls_held_n(), 1);
    ck_assert_uint_eq(tls_held_profile(), 0);
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* A list of ciphers that is longer than a handshake may be. */
START_TEST(a_hello_has_a_limit)
{
    static uint8_t record[5 + 16384];
    struct tls_client *client;

    memcpy(record, (const uint8_t[]) { 22, 3, 1, 0x40, 0, 1, 0xff, 0, 0, 3, 3 }, 11);
    memset(record + 44, 0xff, 2);
    begin_names();
    client = connect_client();
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(!client->socket->closed);
        sim_say(client->socket, record, sizeof(record));
        fixture_run(test.fixture);
    }
    ck_assert_uint_eq(client->socket->sent_n, 7);
    ck_assert_uint_eq(client->socket->sent[6], TLS_DECODE_ERROR);
    expect_end(client, "500;tls_failed;0;0;0", "too long ClientHello" CONTEXT);
    ck_assert_uint_eq(tls_held_n(), 0);
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* ---- Certificates by variables ---- */

/* Gives a profile "NAME.crt", of the name that the client asks for, and "it.key". */
static void add_named_pair(struct tls_profile *profile)
{
    static struct template_part parts[2], key_part;
    static struct template certificate = { parts, 2 }, key = { &key_part, 1 };
    static const struct template *templates[] = { &certificate, &key };
    static const char *directories[] = { "/etc/a", "/etc/a" };

    parts[0] = (struct template_part) { .variable = use("ssl_server_name") };
    parts[1] = (struct template_part) { .text = value_own(".crt", 4) };
    key_part = (struct template_part) { .text = value_own("it.key", 6) };
    profile->named = (struct tls_named) {
        .names = templates, .directories = directories, .n = 2, .asked = parts[0].variable
    };
}

static void expect_held_paths(const char *expected, size_t n)
{
    fb_bytes paths = tls_held_paths();

    ck_assert_uint_eq(paths.n, n);
    ck_assert_mem_eq(paths.p, expected, n);
}

/* The hello whole or byte by byte; no name at all; and no TLS. */
START_TEST(the_hello_decides_about_paths)
{
    struct hello hello = _i == 2 ? hello_of("", 0) : hello_of(HELLO_NAME, sizeof(HELLO_NAME) - 1);
    struct tls_client *client;

    if (_i == 3)
        memcpy(hello.p, "GET / HTTP/1.0", 14);
    begin_servers(1, TLS_LINK_HELD);
    add_handshake(0);
    add_named_pair(&tls_profiles[0]);
    client = connect_client();
    for (size_t n = 0; _i == 1 && n + 1 < hello.n; n++) {
        sim_say(client->socket, hello.p + n, 1);
        fixture_run(test.fixture);
        ck_assert_uint_eq(tls_held_n(), 0);
    }
    sim_say(client->socket, _i == 1 ? hello.p + hello.n - 1 : hello.p, _i == 1 ? 1 : hello.n);
    fixture_run(test.fixture);
    ck_assert_uint_eq(tls_held_n(), 1);
    if (_i < 2)
        expect_held_paths("one.tests.crt\0it.key", 21);
    else
        expect_held_paths(".crt\0it.key", 12);
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* A chosen server's paths, and the failure of a file that a keeper tells of. */
START_TEST(a_bad_file_is_an_error)
{
    struct hello hello = hello_of(HELLO_NAME, sizeof(HELLO_NAME) - 1);
    struct tls_reply reply = { .used = hello.n, .severe = true, .text = "cannot load it" };
    struct tls_client *client;

    begin_names();
    add_named_pair(&tls_profiles[1]);
    client = connect_client();
    sim_say(client->socket, hello.p, hello.n);
    fixture_run(test.fixture);
    ck_assert_uint_eq(tls_held_profile(), 1);
    expect_held_paths("one.tests.crt\0it.key", 21);
    tls_reply_held_by(TLS_FAILED, &reply);
    fixture_run(test.fixture);
    expect_end(client, "500;tls_failed;0;0;0", "[error] *1 cannot load it" CONTEXT);
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* More than a keeper takes. */
START_TEST(too_long_paths_are_refused)
{
    static char text[TLS_PATHS_MOST];
    static struct template_part part;
    static struct template longest = { &part, 1 };
    static const struct template *templates[] = { &longest, &longest };
    struct hello hello = hello_of(HELLO_NAME, sizeof(HELLO_NAME) - 1);
    struct tls_client *client;

    begin_servers(1, TLS_LINK_HELD);
    add_handshake(0);
    add_named_pair(&tls_profiles[0]);
    memset(text, 'x', sizeof(text));
    part = (struct template_part) { .text = value_own(text, TLS_PATHS_MOST / 2) };
    tls_profiles[0].named.names = templates;
    client = connect_client();
    sim_say(client->socket, hello.p, hello.n);
    fixture_run(test.fixture);
    ck_assert_uint_eq(tls_held_n(), 0);
    ck_assert_uint_eq(client->socket->sent[6], TLS_INTERNAL_ERROR);
    expect_end(client, "500;tls_failed;0;0;0", "the names of certificates have more than 4096");
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* The time is the chosen server's, from the begin of the phase. */
START_TEST(the_time_is_of_the_chosen_server)
{
    struct hello hello = hello_of(HELLO_NAME, sizeof(HELLO_NAME) - 1);
    struct tls_client *client;

    begin_names();
    tls_profiles[0].handshake_timeout = 5000;
    tls_profiles[1].handshake_timeout = _i == 0 ? 1000 : 9000;
    client = connect_client();
    fixture_pass(test.fixture, 2000);
    sim_say(client->socket, hello.p, hello.n);
    fixture_run(test.fixture);
    fixture_pass(test.fixture, _i == 0 ? 1 : 6999);
    ck_assert_uint_eq(client->socket->closed, _i == 0);
    fixture_pass(test.fixture, 1);
    expect_end(client, "500;timeout;0;0;0", "client timed out");
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* The chosen server rejects, or verifies; the first does neither. */
START_TEST(the_chosen_server_refuses)
{
    struct hello hello = hello_of(HELLO_NAME, sizeof(HELLO_NAME) - 1);
    struct tls_client *client;

    begin_names();
    tls_profiles[1].reject = _i == 0;
    tls_profiles[1].verify = TLS_VERIFY_ON;
    client = connect_client();
    sim_say(client->socket, hello.p, hello.n);
    fixture_run(test.fixture);
    if (_i == 1) {
        struct tls_reply reply = { .used = hello.n,
            .session = { .version = TLS_1_3, .plain_most = 1000 } };

        tls_reply_held_by(TLS_DONE, &reply);
        fixture_run(test.fixture);
    }
    ck_assert_uint_eq(test.servers[1]->record.openings, 0);
    expect_end(client, _i == 0 ? "500;tls_failed;0;0;0" : "500;tls_failed;0;0;304",
        _i == 0 ? "handshake rejected" : "client sent no required SSL certificate");
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

/* Plaintext of the chosen server is looked at, not of the first. */
START_TEST(later_phases_are_of_the_chosen_server)
{
    struct hello hello = hello_of(HELLO_NAME, sizeof(HELLO_NAME) - 1);
    struct preread_values *values;
    struct tls_client *client;

    begin_names();
    values = server_feature(&test.servers[_i]->server, FEATURE_PREREAD);
    *values = (struct preread_values) { .timeout = TIMEOUT, .buffer_size = 16384 };
    add_before((unsigned)_i, PHASE_PREREAD, preread_begin, NULL);
    client = connect_client();
    sim_say(client->socket, hello.p, hello.n);
    fixture_run(test.fixture);
    finish_hello(client, &hello, 1);
    ck_assert_uint_eq(test.servers[1]->record.openings, _i == 0);
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

START_TEST(a_client_may_go_before)
{
    struct hello hello = hello_of(HELLO_NAME, sizeof(HELLO_NAME) - 1);

    for (size_t n = 0; n < hello.n; n++) {
        struct tls_client *client;

        begin_names();
        client = connect_client();
        if (n > 0)
            sim_say(client->socket, hello.p, n);
        if (_i == 0)
            sim_end(client->socket);
        else
            sim_reset(client->socket, ECONNRESET);
        fixture_run(test.fixture);
        expect_end(client, _i == 0 ? "500;tls_failed;0;0;0" : "500;client_reset;0;0;0", CONTEXT);
        ck_assert_uint_eq(tls_held_n(), 0);
        tls_client_destroy(&client);
        end_tls();
    }
}
END_TEST

/* Slots for connections to servers of groups are kept as the chosen server needs them. */
START_TEST(slots_are_kept_for_the_chosen_server)
{
    struct hello hello = hello_of(HELLO_NAME, sizeof(HELLO_NAME) - 1);
    struct tls_client *client;

    begin_names();
    test.servers[0]->server.connects = true;
    client = connect_client();
    ck_assert_uint_eq(test.fixture->net->reserved, 1);
    sim_say(client->socket, hello.p, hello.n);
    fixture_run(test.fixture);
    ck_assert_uint_eq(test.fixture->net->reserved, 0);
    finish_hello(client, &hello, 1);
    tls_client_destroy(&client);
    end_tls();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_name_chooses_the_server, 0, 3);
    tcase_add_loop_test(tcase, other_bytes_choose_the_default_server, 0, 2);
    tcase_add_test(tcase, a_hello_has_a_limit);
    /* without OpenSSL $ssl_server_name has no value but the hello's */
    tcase_add_loop_test(tcase, the_hello_decides_about_paths, 0, HAVE_OPENSSL ? 4 : 2);
    tcase_add_test(tcase, a_bad_file_is_an_error);
    tcase_add_test(tcase, too_long_paths_are_refused);
    tcase_add_loop_test(tcase, the_time_is_of_the_chosen_server, 0, 2);
    tcase_add_loop_test(tcase, the_chosen_server_refuses, 0, 2);
    tcase_add_loop_test(tcase, later_phases_are_of_the_chosen_server, 0, 2);
    tcase_add_loop_test(tcase, a_client_may_go_before, 0, 2);
    tcase_add_test(tcase, slots_are_kept_for_the_chosen_server);
}

TEST_MAIN("ssl_handshake_names", add_tests)

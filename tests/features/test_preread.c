/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients in the preread phase, before their protocol reads: the arrival of the bytes, the
 * variables set by them, and the further ends of a preread session. */
#include "features/hello.h"
#include "session/idle.h"
#include "session/ways.h"

#include "base/compiler.h"
#include "features/preread/preread.h"

#include <errno.h>

#define BYTES(text) text, sizeof(text) - 1
#define TIMEOUT 3000

static const char *const names[] = { "ssl_preread_protocol", "ssl_preread_server_name",
    "ssl_preread_alpn_protocols", "bytes_received", "status" };

static struct variable *used[countof(names)];
static struct phase_handler log_handler;
static char seen[256]; /* by the log, with ";" between them; "-": missing */
static unsigned logged, accesses;

static void tell(struct fb_conn *conn, char text[static 256])
{
    size_t n = 0;

    for (size_t i = 0; i < countof(names); i++) {
        const struct value *value = variable_value(conn, used[i]);

        n += (size_t)snprintf(text + n, 256 - n, "%s%.*s", i > 0 ? ";" : "",
            value->state == VALUE_MISSING ? 1 : (int)value->n,
            value->state == VALUE_MISSING ? "-" : value->p);
        ck_assert_uint_lt(n, 256);
    }
}

static unsigned note_end(struct fb_conn *conn, const void *arg)
{
    (void)arg;
    logged++;
    tell(conn, seen);
    return 0;
}

static unsigned note_access(struct fb_conn *conn, const void *arg)
{
    (void)conn;
    (void)arg;
    accesses++;
    return 0;
}

static struct preread_values *values_of(unsigned i)
{
    return server_feature(&test.servers[i]->server, FEATURE_PREREAD);
}

/* Begins a test of servers with noted access; some read ahead. */
static void begin_preread(unsigned servers)
{
    begin();
    logged = accesses = 0;
    for (size_t i = 0; i < countof(names); i++)
        used[i] = use(names[i]);
    log_handler = (struct phase_handler) { .phase = PHASE_LOG, .run = note_end };
    for (unsigned i = 0; i < 2; i++) {
        test.servers[i]->server.after = &log_handler;
        *values_of(i) = (struct preread_values) { .timeout = TIMEOUT, .buffer_size = 16384 };
        add_before(i, PHASE_ACCESS, note_access, NULL);
        if (i < servers)
            add_before(i, PHASE_PREREAD, preread_begin, NULL);
    }
}

static struct sim_socket *connect_client(void)
{
    struct sim_socket *client = scripted_connect(test.fixture);

    fixture_run(test.fixture);
    ck_assert_uint_eq(accesses, 1);
    ck_assert_uint_eq(test.fixture->server.record.openings, 0);
    return client;
}

/* Lets a client send bytes, and runs its session to the end. */
static struct sim_socket *serve(const void *p, size_t n)
{
    struct sim_socket *client = connect_client();

    if (n > 0)
        sim_say(client, p, n);
    fixture_run(test.fixture);
    if (!client->closed) {
        sim_end(client);
        fixture_run(test.fixture);
    }
    ck_assert(client->closed);
    ck_assert_uint_eq(logged, 1);
    return client;
}

static void expect_sent(const struct sim_socket *client, const struct hello *hello)
{
    ck_assert_uint_eq(client->sent_n, hello->n);
    ck_assert_mem_eq(sim_sent(client), hello->p, hello->n);
}

START_TEST(a_hello_may_come_in_parts)
{
    struct hello message = hello_message(BYTES(HELLO_NAME HELLO_PROTOCOLS HELLO_VERSIONS));
    struct hello hello = hello_records(&message, _i == 0 ? HELLO_MOST : 30);
    for (size_t n = 0; n <= hello.n; n++) {
        struct sim_socket *client;

        begin_preread(1);
        client = connect_client();
        if (n > 0)
            sim_say(client, hello.p, n);
        fixture_run(test.fixture);
        ck_assert_uint_eq(test.fixture->server.record.openings, n == hello.n);
        if (n < hello.n)
            sim_say(client, hello.p + n, hello.n - n);
        fixture_run(test.fixture);
        ck_assert_uint_eq(test.fixture->server.record.openings, 1);
        ck_assert_uint_eq(test.fixture->server.record.datas, 1);
        expect_sent(client, &hello);
        sim_says(client, "more");
        sim_end(client);
        fixture_run(test.fixture);
        ck_assert_str_eq(seen, "TLSv1.3;one.tests;h2,http/1.1;4;200");
        end();
    }
}
END_TEST

START_TEST(a_hello_may_come_byte_by_byte)
{
    struct hello message = hello_message(BYTES(HELLO_NAME));
    struct hello hello = hello_records(&message, 7);
    struct sim_socket *client;

    begin_preread(1);
    client = connect_client();
    for (size_t i = 0; i < hello.n; i++) {
        ck_assert_uint_eq(test.fixture->server.record.openings, 0);
        sim_say(client, hello.p + i, 1);
        fixture_run(test.fixture);
    }
    expect_sent(client, &hello);
    end();
}
END_TEST

/* Bytes sent by a client before the end of its half, and the resulting variables. */
static const struct {
    const char *bytes;
    size_t n;
    const char *seen;
} beginnings[] = {
    { BYTES(""), "-;-;-;0;200" },
    { BYTES("GET "), ";;;0;200" },
    { BYTES("GET /"), "-;-;-;0;200" },
    { BYTES("\x80\x2e\x01\x03\x01 and more"), "TLSv1;;;0;200" },
    { BYTES("\x16\x03\x01\0\x04\x01\0\0\x01 malformed"), "-;-;-;0;200" },
    { BYTES("\x16\x03\x01\0\x06\x01\0\0\x40\x03\x02"), "TLSv1.1;;;0;200" },
};

START_TEST(a_beginning_decides)
{
    struct sim_socket *client;

    begin_preread(1);
    client = serve(beginnings[_i].bytes, beginnings[_i].n);
    ck_assert_str_eq(seen, beginnings[_i].seen);
    ck_assert_uint_eq(client->sent_n > 0, test.fixture->server.record.openings);
    ck_assert_uint_eq(test.fixture->server.record.closings, test.fixture->server.record.openings);
    end();
}
END_TEST

START_TEST(a_full_buffer_ends_the_session)
{
    struct hello hello = hello_of(BYTES(HELLO_NAME HELLO_PROTOCOLS));

    for (size_t size = hello.n - 1; size <= hello.n; size++) {
        begin_preread(1);
        values_of(0)->buffer_size = (int64_t)size;
        serve(hello.p, hello.n);
        ck_assert_uint_eq(test.fixture->server.record.openings, size == hello.n);
        if (size < hello.n) {
            ck_assert_str_eq(seen, ";;;0;400");
            ck_assert_ptr_nonnull(strstr(fixture_logged(test.fixture),
                "preread buffer full while prereading client data, client: 192.0.2.1, server: "
                "192.0.2.7:77\n"));
        }
        end();
    }
}
END_TEST

START_TEST(what_is_behind_a_full_buffer_does_not_matter)
{
    struct hello hello = hello_of(BYTES(HELLO_NAME));

    begin_preread(1);
    values_of(0)->buffer_size = (int64_t)hello.n;
    hello_add(&hello, BYTES("early data"));
    expect_sent(serve(hello.p, hello.n), &hello);
    end();
}
END_TEST

START_TEST(the_time_is_over_all_bytes)
{
    struct sim_socket *client;

    begin_preread(1);
    test.servers[0]->server.settings.first_byte_timeout = 500;
    client = connect_client();
    for (int i = 0; i < 3; i++) {
        fixture_pass(test.fixture, TIMEOUT / 3 - 1);
        ck_assert(!client->closed);
        sim_say(client, "\x16\x03\x01", 1);
        fixture_run(test.fixture);
    }
    fixture_pass(test.fixture, 2);
    ck_assert(!client->closed);
    fixture_logged(test.fixture);
    fixture_pass(test.fixture, 1);
    ck_assert(client->closed);
    ck_assert_str_eq(seen, ";;;0;200");
    ck_assert_ptr_null(strstr(fixture_logged(test.fixture), "while prereading"));
    ck_assert_uint_eq(test.fixture->server.record.openings, 0);
    end();
}
END_TEST

START_TEST(a_longer_time_than_a_deadline_can_be)
{
    struct sim_socket *client;

    begin_preread(1);
    values_of(0)->timeout = (int64_t)CONN_DEADLINE_MOST + 1000;
    client = connect_client();
    fixture_pass(test.fixture, CONN_DEADLINE_MOST);
    ck_assert(!client->closed);
    fixture_pass(test.fixture, 1000);
    ck_assert(client->closed);
    end();
}
END_TEST

START_TEST(a_reset_is_told)
{
    struct sim_socket *client;

    begin_preread(1);
    client = connect_client();
    sim_says(client, "\x16");
    sim_break(client, ECONNRESET);
    fixture_run(test.fixture);
    ck_assert(client->closed);
    ck_assert_str_eq(seen, ";;;0;200");
    ck_assert_ptr_nonnull(strstr(fixture_logged(test.fixture),
        "(104: Connection reset by peer) while prereading client data, client: 192.0.2.1"));
    end();
}
END_TEST

START_TEST(a_header_comes_before)
{
    struct hello hello = hello_of(BYTES(HELLO_NAME)), all = { .n = 0 };

    hello_add(&all, BYTES(LINE));
    hello_add(&all, hello.p, hello.n);
    for (size_t n = sizeof(LINE) - 1; n <= all.n; n++) {
        struct sim_socket *client;

        begin_preread(1);
        test.servers[0]->binding.ops = &proxy_protocol_ops;
        client = scripted_connect(test.fixture);
        sim_say(client, all.p, n);
        fixture_run(test.fixture);
        ck_assert_uint_eq(accesses, 1);
        ck_assert_uint_eq(test.fixture->server.record.openings, n == all.n);
        if (n < all.n)
            sim_say(client, all.p + n, all.n - n);
        fixture_run(test.fixture);
        expect_sent(client, &hello);
        sim_end(client);
        fixture_run(test.fixture);
        ck_assert_str_eq(seen, "TLSv1.2;one.tests;;0;200");
        end();
    }
}
END_TEST

START_TEST(a_client_is_passed_on)
{
    struct hello hello = hello_of(BYTES(HELLO_NAME));
    struct sim_socket *client;

    begin_preread((unsigned)_i); /* preread in no server, the first, or both */
    pass_clients(pass);
    test.second.script.data = scripted_echo;
    client = scripted_connect(test.fixture);
    sim_say(client, hello.p, hello.n);
    fixture_run(test.fixture);
    ck_assert_uint_eq(accesses, 2);
    ck_assert_uint_eq(test.second.record.openings, 1);
    expect_sent(client, &hello);
    sim_end(client);
    fixture_run(test.fixture);
    ck_assert_str_eq(seen, _i == 2   ? "TLSv1.2;one.tests;;0;200"
                           : _i == 1 ? "-;-;-;0;200"
                                     : "-;-;-;70;200");
    end();
}
END_TEST

START_TEST(a_drain_waits)
{
    struct sim_socket *first, *second;

    begin_preread(1);
    first = connect_client();
    second = scripted_connect(test.fixture);
    sim_says(first, "GET");
    fixture_run(test.fixture);
    session_drain(test.fixture->stream, 0);
    fixture_settle(test.fixture);
    ck_assert_uint_eq(test.fixture->server.record.openings, 0);
    sim_says(first, " / HTTP/1.0");
    fixture_run(test.fixture);
    ck_assert_str_eq(sim_sent(first), "GET / HTTP/1.0");
    fixture_pass(test.fixture, TIMEOUT);
    ck_assert(second->closed && !first->closed);
    end();
}
END_TEST

/* A lifetime that ends during the preread, and a rate; both begin before. */
START_TEST(times_go_on)
{
    struct sim_socket *client;

    begin_preread(0);
    set_times(&test.servers[0]->server, true);
    add_before(0, PHASE_PREREAD, preread_begin, NULL);
    test.servers[0]->server.settings.receive_timeout = 700;
    values_of(0)->timeout = 100000;
    client = connect_client();
    fixture_pass(test.fixture, 2000);
    ck_assert(!client->closed);
    sim_says(client, "hello");
    fixture_run(test.fixture);
    ck_assert_str_eq(sim_sent(client), "hello");
    fixture_pass(test.fixture, 700);
    ck_assert(client->closed);
    ck_assert_str_eq(seen, "-;-;-;0;200");
    end();

    begin_preread(0);
    set_times(&test.servers[0]->server, true);
    add_before(0, PHASE_PREREAD, preread_begin, NULL);
    values_of(0)->timeout = 100000;
    client = connect_client();
    fixture_pass(test.fixture, 10000); /* its lifetime */
    fixture_pass(test.fixture, 4999);
    ck_assert(!client->closed);
    fixture_pass(test.fixture, 1);
    ck_assert(client->closed);
    ck_assert_uint_eq(test.fixture->server.record.openings, 0);
    end();
}
END_TEST

static int close_at_once(fb_conn *conn, void *state)
{
    (void)state;
    fb_write(conn, "bye", 3);
    fb_close(conn);
    return 0;
}

START_TEST(a_protocol_may_stop_or_close)
{
    struct sim_socket *client;

    begin_preread(1);
    test.servers[0]->script.opened = scripted_stop;
    client = connect_client();
    sim_says(client, "hello");
    fixture_run(test.fixture);
    ck_assert_uint_eq(test.fixture->server.record.openings, 1);
    ck_assert_uint_eq(test.fixture->server.record.datas, 0);
    fb_resume(test.fixture->server.record.conn);
    fixture_run(test.fixture);
    ck_assert_str_eq(sim_sent(client), "hello");
    ck_assert_uint_eq(fb_received(test.fixture->server.record.conn), 0);
    end();

    begin_preread(1);
    test.servers[0]->script.opened = close_at_once;
    ck_assert_str_eq(sim_sent(serve(BYTES("hello"))), "bye");
    ck_assert_str_eq(seen, "-;-;-;0;200");
    end();
}
END_TEST

START_TEST(who_may_not_come_is_not_heard)
{
    struct sim_socket *first, *second;

    begin_preread(0);
    add_limit(0, 1);
    add_before(0, PHASE_PREREAD, preread_begin, NULL);
    first = connect_client();
    second = scripted_connect(test.fixture);
    fixture_run(test.fixture);
    ck_assert(second->closed && !first->closed);
    ck_assert_str_eq(seen, "-;-;-;0;503");
    end();

    begin_preread(0);
    add_before(0, PHASE_ACCESS, refuse, NULL);
    add_before(0, PHASE_PREREAD, preread_begin, NULL);
    serve(BYTES("hello"));
    ck_assert_str_eq(seen, "-;-;-;0;403");
    end();
}
END_TEST

START_TEST(without_memory_there_is_no_session)
{
    struct hello hello = hello_of(BYTES(HELLO_NAME HELLO_PROTOCOLS));

    for (unsigned n = 0; n < 8; n++) {
        struct sim_socket *client;

        begin_preread(1);
        test.fixture->memory.until_failure = n;
        client = scripted_connect(test.fixture);
        sim_say(client, hello.p, 20);
        fixture_run(test.fixture);
        sim_say(client, hello.p + 20, hello.n - 20);
        fixture_run(test.fixture);
        test.fixture->memory.until_failure = UINT_MAX;
        ck_assert_uint_le(
            test.fixture->server.record.closings, test.fixture->server.record.openings);
        fixture_logged(test.fixture);
        end();
    }
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_hello_may_come_in_parts, 0, 2);
    tcase_add_test(tcase, a_hello_may_come_byte_by_byte);
    tcase_add_loop_test(tcase, a_beginning_decides, 0, countof(beginnings));
    tcase_add_test(tcase, a_full_buffer_ends_the_session);
    tcase_add_test(tcase, what_is_behind_a_full_buffer_does_not_matter);
    tcase_add_test(tcase, the_time_is_over_all_bytes);
    tcase_add_test(tcase, a_longer_time_than_a_deadline_can_be);
    tcase_add_test(tcase, a_reset_is_told);
    tcase_add_test(tcase, a_header_comes_before);
    tcase_add_loop_test(tcase, a_client_is_passed_on, 0, 3);
    tcase_add_test(tcase, a_drain_waits);
    tcase_add_test(tcase, times_go_on);
    tcase_add_test(tcase, a_protocol_may_stop_or_close);
    tcase_add_test(tcase, who_may_not_come_is_not_heard);
    tcase_add_test(tcase, without_memory_there_is_no_session);
}

TEST_MAIN("preread", add_tests)

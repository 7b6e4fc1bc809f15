/* SPDX-License-Identifier: BSD-2-Clause */
/* fb_connect(). */
#include "sdk/scripted_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

START_TEST(a_server_answers)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { 0 };
    fb_test_peer *server;

    scripted_conn_open(test, &a);
    server = scripted_conn_connect(test, &a, &b);
    ck_assert_uint_eq(b.openings, 1);
    ck_assert(!fb_is_reused(b.conn));
    ck_assert(!fb_is_reused(a.conn));
    fb_write(b.conn, "question", 8);
    scripted_settle(test);
    ck_assert_str_eq(peer_heard(server), "question");
    fb_test_says(server, "answer");
    fb_test_run(test);
    ck_assert_str_eq(b.last, "answer");
    fb_test_shut(server);
    fb_test_run(test);
    ck_assert_uint_eq(b.eofs, 1);
    ck_assert_int_eq(b.reason, FB_FINISHED);
    ck_assert_uint_eq(a.closings, 0);
    scripted_finish(&test);
}
END_TEST

static size_t forward_input(struct scripted_conn *script, fb_bytes in)
{
    if (script->other->conn == NULL)
        scripted_conn_begin(script, script->other, SERVER);
    fb_write(script->other->conn, in.p, in.n);
    return in.n;
}

START_TEST(a_request_is_forwarded_before_the_server_has_answered)
{
    fb_test *test = scripted_start();
    struct scripted_conn b = { 0 }, a = { .data = forward_input, .other = &b };
    fb_test_peer *client = scripted_conn_open(test, &a);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_SILENT);

    fb_test_says(client, "one, ");
    fb_test_run(test);
    fb_test_says(client, "two, ");
    fb_test_run(test);
    fb_test_says(client, "three");
    fb_test_run(test);
    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    ck_assert_str_eq(peer_heard(fb_test_accept(server)), "one, two, three");
    scripted_finish(&test);
}
END_TEST

START_TEST(nobody_is_there)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { 0 };

    scripted_conn_open(test, &a);
    ck_assert_ptr_nonnull(scripted_conn_begin(&a, &b, _i == 0 ? "10.0.0.9:9" : "unix:/nowhere"));
    ck_assert_uint_eq(b.closings, 0);
    scripted_settle(test);
    ck_assert_uint_eq(b.openings, 0);
    ck_assert_uint_eq(b.closings, 1);
    ck_assert_int_eq(b.reason, FB_REFUSED);
    ck_assert_uint_eq(a.closings, 0);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test),
        _i == 0 ? "[error] *1 connect() failed (111: Connection refused), client: 192.0.2.1, "
                  "server: 192.0.2.80:80, upstream: \"10.0.0.9:9\"\n"
                : "[error] *1 connect() failed (111: Connection refused), client: 192.0.2.1, "
                  "server: 192.0.2.80:80, upstream: \"unix:/nowhere\"\n"));
    scripted_finish(&test);
}
END_TEST

START_TEST(a_refusal_that_connect_itself_tells)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { 0 };
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_REFUSES);

    server->server->at_once = true;
    scripted_conn_open(test, &a);
    ck_assert_ptr_nonnull(scripted_conn_begin(&a, &b, SERVER));
    ck_assert_uint_eq(b.closings, 0);
    scripted_settle(test);
    ck_assert_int_eq(b.reason, FB_REFUSED);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "[error] *1 connect() failed"));
    scripted_finish(&test);
}
END_TEST

static int refuse_server(struct scripted_conn *script)
{
    fb_write(script->conn, "unsent", 6);
    return -1;
}

START_TEST(opened_refuses_a_server)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { .opened = refuse_server };

    scripted_conn_open(test, &a);
    scripted_conn_connect(test, &a, &b);
    ck_assert_uint_eq(b.closings, 1);
    ck_assert_int_eq(b.reason, FB_REFUSED);
    scripted_finish(&test);
}
END_TEST

/* ---- Time ---- */

START_TEST(a_silent_server_times_out)
{
    uint64_t ms = _i == 0 ? 60000 : 2000;
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { 0 };

    scripted_conn_open(test, &a);
    fb_test_serve(test, SERVER, FB_TEST_SILENT);
    scripted_conn_begin(&a, &b, SERVER);
    if (_i > 0)
        fb_set_timeout(b.conn, ms);
    scripted_settle(test);
    fb_test_pass(test, ms - 1);
    ck_assert_uint_eq(b.closings, 0);
    fb_test_pass(test, 1);
    ck_assert_int_eq(b.reason, FB_TIMED_OUT);
    scripted_finish(&test);
}
END_TEST

/* The worker stands still meanwhile. */
START_TEST(a_server_that_has_answered_in_time_is_not_late)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { 0 };

    scripted_conn_open(test, &a);
    fb_test_serve(test, SERVER, FB_TEST_SILENT);
    scripted_conn_begin(&a, &b, SERVER);
    fb_set_timeout(b.conn, 2000);
    scripted_settle(test);
    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    sim_pass(test->sim, 3000);
    scripted_settle(test);
    ck_assert_uint_eq(b.openings, 1);
    fb_test_pass(test, 1000);
    ck_assert_uint_eq(b.closings, 0);
    scripted_finish(&test);
}
END_TEST

START_TEST(a_connected_one_waits_as_long_as_it_is_told)
{
    fb_test *test = fb_test_start(&fb_protocol_scripted, "scripted; idle_timeout off;");
    struct scripted_conn a = { 0 }, b = { 0 };
    fb_test_peer *client = scripted_conn_open(test, &a);

    fb_test_says(client, "x");
    scripted_conn_connect(test, &a, &b);
    fb_test_pass(test, 10000000);
    ck_assert_uint_eq(b.closings, 0); /* never */
    fb_set_timeout(b.conn, 1000);
    fb_test_pass(test, 999);
    ck_assert_uint_eq(b.closings, 0);
    fb_test_pass(test, 1);
    ck_assert_int_eq(b.reason, FB_TIMED_OUT);
    scripted_finish(&test);
}
END_TEST

/* ---- Slots ---- */

START_TEST(all_connections_are_in_use)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "scripted; first_byte_timeout off;",
        .worker_connections = 2,
    };
    fb_test *test = fb_test_start_with(&fb_protocol_scripted, &options);
    struct scripted_conn a = { 0 }, b = { 0 }, c = { 0 };

    scripted_conn_open(test, &a);
    scripted_conn_connect(test, &a, &b);
    ck_assert_ptr_null(scripted_conn_begin(&a, &c, SERVER));
    scripted_settle(test);
    ck_assert_uint_eq(c.openings + c.closings, 0);
    fb_close(b.conn);
    scripted_settle(test);
    ck_assert_ptr_nonnull(scripted_conn_begin(&a, &c, SERVER));
    scripted_settle(test);
    ck_assert_uint_eq(c.openings, 1);
    scripted_finish(&test);
}
END_TEST

/* An idle connection gives up a slot for a new connection. */
START_TEST(what_is_kept_makes_room)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "scripted; first_byte_timeout off;",
        .worker_connections = 3,
    };
    fb_test *test = fb_test_start_with(&fb_protocol_scripted, &options);
    struct scripted_conn client = { 0 }, kept[2] = { { 0 } }, others[2] = { { 0 } };
    fb_test_peer *old, *new;

    scripted_conn_open(test, &client);
    old = scripted_conn_connect(test, &client, &kept[0]);
    new = scripted_conn_connect(test, &client, &kept[1]);
    fb_keep(kept[0].conn, 10000);
    scripted_settle(test);
    fb_keep(kept[1].conn, 10000);
    scripted_settle(test);
    fb_test_serve(test, "10.0.0.2:80", FB_TEST_ACCEPTS);
    ck_assert_ptr_nonnull(scripted_conn_begin(&client, &others[0], "10.0.0.2:80"));
    scripted_settle(test);
    ck_assert_uint_eq(others[0].openings, 1);
    ck_assert(fb_test_is_closed(old) && !fb_test_is_closed(new)); /* the longest unused */
    scripted_conn_open(test, &others[1]);
    ck_assert_uint_eq(others[1].openings, 1);
    ck_assert(fb_test_is_closed(new));
    scripted_finish(&test);
}
END_TEST

START_TEST(servers_are_no_clients)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { .data = scripted_leave_input };
    fb_statistics s = { .size = sizeof(s) };
    fb_test_peer *server;

    scripted_conn_open(test, &a);
    server = scripted_conn_connect(test, &a, &b);
    fb_test_take(server, 0);
    fb_test_says(server, "not consumed");
    fb_write(b.conn, "not sent", 8);
    scripted_settle(test);
    fb_get_statistics(fb_test_worker(test), &s);
    ck_assert_uint_eq(s.accepts, 1);
    ck_assert_uint_eq(s.handled, 1);
    ck_assert_uint_eq(s.active, 1);
    ck_assert_uint_eq(s.reading + s.writing, 0);
    ck_assert_uint_eq(s.waiting, 1);
    scripted_finish(&test);
}
END_TEST

static const char *const bad_targets[] = { "", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:65536", "*:80",
    "80", "example.com:80", "localhost:80", "[::1]", "::1:80", "unix:", "10.0.0.1:80-90" };

START_TEST(what_is_no_target)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 };

    scripted_conn_open(test, &a);
    for (size_t i = 0; i < countof(bad_targets); i++)
        ck_assert_ptr_null(fb_make_target(a.conn, bad_targets[i]));
    ck_assert_ptr_nonnull(fb_make_target(a.conn, "[::1]:80"));
    ck_assert_ptr_nonnull(fb_make_target(a.conn, "unix:/x"));
    scripted_settle(test);
    ck_assert_uint_eq(a.closings, 0);
    scripted_finish(&test);
}
END_TEST

/* ---- Without memory ---- */

START_TEST(each_allocation_fails)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { 0 };
    const fb_target *target;

    scripted_conn_open(test, &a);
    target = fb_make_target(a.conn, SERVER);
    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    if (_i % 2) { /* an owner without anything yet: only the connect allocates */
        struct scripted_conn c = { 0 };

        scripted_conn_open(test, &c);
        fb_test_refuse_memory(test, (uint64_t)_i / 2, 1);
        b.conn = fb_connect(c.conn, target, &scripted_conn_ops, &b);
        scripted_settle(test);
        if (c.conn != NULL)
            fb_abort(c.conn);
        scripted_settle(test);
        fb_abort(a.conn); /* the owner of the target */
        scripted_settle(test);
    } else {
        fb_test_refuse_memory(test, (uint64_t)_i / 2, 1);
        b.conn = fb_connect(a.conn, target, &scripted_conn_ops, &b);
        scripted_settle(test);
    }
    scripted_finish(&test); /* no bytes are left */
}
END_TEST

/* ---- What log lines say ---- */

/* A closed connection still listened to gives up a slot too. */
START_TEST(lines_of_connections_to_servers)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { 0 };
    fb_test_peer *server;

    scripted_conn_open(test, &a);
    a.conn->debug = 1; /* debug_connection */
    server = scripted_conn_connect(test, &a, &b);
    fb_conn_logf(b.conn, FB_LOG_WARN, "strange");
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "[warn] *1 strange, client: 192.0.2.1, "
                                                       "server: 192.0.2.80:80, "
                                                       "upstream: \"10.0.0.1:80\"\n"));
    fb_stop(b.conn);
    fb_test_says(server, "unread");
    fb_close(b.conn);
    scripted_settle(test);
    ck_assert_int_eq(b.reason, FB_FINISHED);
    ck_assert(!server->socket->closed); /* lingers */
    fb_test_reset(server);
    fb_test_run(test);
    ck_assert(server->socket->closed);
    scripted_finish(&test);
}
END_TEST

START_TEST(addresses_of_both_ends)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 }, b = { 0 }, c = { 0 };
    struct sockaddr_storage address;
    char text[120];

    scripted_conn_open(test, &a);
    scripted_conn_connect(test, &a, &b);
    ck_assert_int_eq(fb_peer_address(a.conn, &address), 0);
    ck_assert_str_eq(fb_address_text(&address, text, sizeof(text)), "192.0.2.1:40001");
    ck_assert_int_eq(fb_local_address(a.conn, &address), 0);
    ck_assert_str_eq(fb_address_text(&address, text, sizeof(text)), "192.0.2.80:80");
    ck_assert_int_eq(fb_peer_address(b.conn, &address), 0);
    ck_assert_str_eq(fb_address_text(&address, text, sizeof(text)), "10.0.0.1:80");
    ck_assert_int_eq(fb_local_address(b.conn, &address), 0);
    ck_assert_int_eq(strncmp(fb_address_text(&address, text, sizeof(text)), "192.0.2.100:", 12), 0);
    ck_assert_str_eq(fb_address_text(&address, text, 5), "192.");

    fb_test_serve(test, "unix:/run/server", FB_TEST_ACCEPTS);
    scripted_conn_begin(&a, &c, "unix:/run/server");
    scripted_settle(test);
    ck_assert_int_eq(fb_peer_address(c.conn, &address), 0);
    ck_assert_str_eq(fb_address_text(&address, text, sizeof(text)), "unix:/run/server");
    ck_assert_int_eq(fb_local_address(c.conn, &address), 0);
    ck_assert_str_eq(fb_address_text(&address, text, sizeof(text)), "unix:");
    scripted_finish(&test);
}
END_TEST

START_TEST(bytes_are_counted)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { .data = scripted_leave_input };
    fb_test_peer *peer = scripted_conn_open(test, &a);

    ck_assert_uint_eq(fb_received(a.conn) + fb_sent(a.conn), 0);
    fb_test_take(peer, 4);
    fb_test_says(peer, "hello");
    fb_test_run(test);
    fb_write(a.conn, "welcome", 7);
    ck_assert_uint_eq(fb_unsent(a.conn), 7);
    scripted_settle(test);
    ck_assert_uint_eq(fb_received(a.conn), 5);
    ck_assert_uint_eq(fb_sent(a.conn), 4);
    ck_assert_uint_eq(fb_unsent(a.conn), 3);
    scripted_finish(&test);
}
END_TEST

/* Texts of addresses, and the text of what was read; NULL: none. */
static const struct {
    const char *text, *read;
} parsed[] = {
    { "192.0.2.1", "192.0.2.1:0" },
    { "192.0.2.1:1", "192.0.2.1:1" },
    { "192.0.2.1:65535", "192.0.2.1:65535" },
    { "2001:db8::1", "[2001:db8::1]:0" },
    { "[2001:db8::1]:80", "[2001:db8::1]:80" },
    { "::ffff:192.0.2.1", "[::ffff:192.0.2.1]:0" },
    { "2001:db8::1:80", "[2001:db8::1:80]:0" },
    { "", NULL },
    { ":80", NULL },
    { "192.0.2", NULL },
    { "192.0.2.1:", NULL },
    { "192.0.2.1:0", NULL },
    { "192.0.2.1:65536", NULL },
    { "192.0.2.1:99999999999", NULL },
    { "192.0.2.1:-1", NULL },
    { "192.0.2.1:80 ", NULL },
    { " 192.0.2.1", NULL },
    { "[192.0.2.1]:80", NULL },
    { "[2001:db8::1]", NULL },
    { "[2001:db8::1:80", NULL },
    { "2001:db8::1]:80", NULL },
    { "fe80::1%eth0", NULL },
    { "localhost:80", NULL },
    { "unix:/run/socket", NULL },
    { "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:655350", NULL },
};

START_TEST(texts_of_addresses_are_read)
{
    size_t n = strlen(parsed[_i].text);
    char *exact = malloc(n + 1), text[120];
    struct sockaddr_storage address;
    int status;

    ck_assert_ptr_nonnull(exact);
    memcpy(exact, parsed[_i].text, n);
    exact[n] = '7'; /* belongs to nobody's text */
    status = fb_parse_address((fb_bytes) { (const uint8_t *)exact, n }, &address);
    ck_assert_int_eq(status, parsed[_i].read != NULL ? 0 : -1);
    if (status == 0)
        ck_assert_str_eq(fb_address_text(&address, text, sizeof(text)), parsed[_i].read);
    else
        ck_assert_int_eq(address.ss_family, AF_UNSPEC);
    free(exact);
}
END_TEST

START_TEST(a_text_with_a_nul_is_no_address)
{
    static const uint8_t text[] = "192.0.2.1\0:80";
    struct sockaddr_storage address;

    ck_assert_int_eq(fb_parse_address((fb_bytes) { text, sizeof(text) - 1 }, &address), -1);
    ck_assert_int_eq(fb_parse_address((fb_bytes) { NULL, 0 }, &address), -1);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_server_answers);
    tcase_add_test(tcase, a_request_is_forwarded_before_the_server_has_answered);
    tcase_add_loop_test(tcase, nobody_is_there, 0, 2);
    tcase_add_test(tcase, a_refusal_that_connect_itself_tells);
    tcase_add_test(tcase, opened_refuses_a_server);
    tcase_add_loop_test(tcase, a_silent_server_times_out, 0, 2);
    tcase_add_test(tcase, a_server_that_has_answered_in_time_is_not_late);
    tcase_add_test(tcase, a_connected_one_waits_as_long_as_it_is_told);
    tcase_add_test(tcase, all_connections_are_in_use);
    tcase_add_test(tcase, what_is_kept_makes_room);
    tcase_add_test(tcase, servers_are_no_clients);
    tcase_add_test(tcase, what_is_no_target);
    tcase_add_loop_test(tcase, each_allocation_fails, 0, 10);
    tcase_add_test(tcase, lines_of_connections_to_servers);
    tcase_add_test(tcase, addresses_of_both_ends);
    tcase_add_test(tcase, bytes_are_counted);
    tcase_add_loop_test(tcase, texts_of_addresses_are_read, 0, sizeof(parsed) / sizeof(*parsed));
    tcase_add_test(tcase, a_text_with_a_nul_is_no_address);
}

TEST_MAIN("sdk_servers", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* fb_connect_with(): connections of a worker, and options of connecting. */
#include "net/address_parse.h"
#include "sdk/scripted_conn.h"
#include "session/conn.h"
#include "session/idle.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/un.h>

static struct sockaddr_in address_of(const char *text, in_port_t port)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

    ck_assert_int_eq(inet_pton(AF_INET, text, &in.sin_addr), 1);
    return in;
}

/* Connects to 10.0.0.1:80, unless the options say otherwise. */
static fb_conn *connect_with(
    fb_test *test, struct scripted_conn *script, const fb_connect_options *options)
{
    struct sockaddr_in server = address_of("10.0.0.1", 80);
    fb_connect_options own = { .size = sizeof(own) };

    if (options != NULL)
        own = *options;
    if (own.address == NULL)
        own.address = (struct sockaddr *)&server;
    script->conn = fb_connect_with(fb_test_worker(test), NULL, &scripted_conn_ops, script, &own);
    return script->conn;
}

#define WITH(...)                                                                                  \
    &(fb_connect_options)                                                                          \
    {                                                                                              \
        .size = sizeof(fb_connect_options), __VA_ARGS__                                            \
    }

START_TEST(a_worker_has_a_connection_of_its_own)
{
    fb_test *test = scripted_start();
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    struct scripted_conn own = { 0 };
    fb_test_peer *peer;

    ck_assert_ptr_nonnull(connect_with(test, &own, NULL));
    fb_write(own.conn, "question", 8);
    ck_assert_uint_eq(own.openings, 0);
    scripted_settle(test);
    ck_assert_uint_eq(own.openings, 1);
    peer = fb_test_accept(server);
    ck_assert_str_eq(peer_heard(peer), "question");
    fb_test_says(peer, "answer");
    fb_test_run(test);
    ck_assert_str_eq(own.last, "answer");
    ck_assert_ptr_null(fb_conf_of(own.conn));
    ck_assert_ptr_eq(fb_worker_of(own.conn), fb_test_worker(test));
    ck_assert_ptr_eq(fb_find(fb_test_worker(test), fb_ref_of(own.conn)), own.conn);
    ck_assert_ptr_nonnull(fb_alloc(own.conn, 100));
    fb_test_pass(test, 1000000);
    ck_assert_uint_eq(own.closings, 0);
    fb_test_shut(peer);
    fb_test_run(test);
    ck_assert_int_eq(own.reason, FB_FINISHED);
    scripted_finish(&test);
}
END_TEST

/* A connection made for the owner ends with the owner. */
START_TEST(it_owns_others)
{
    fb_test *test = scripted_start();
    struct scripted_conn own = { 0 }, child = { 0 };

    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    connect_with(test, &own, NULL);
    scripted_settle(test);
    connect_with(test, &child, WITH(.owner = own.conn));
    scripted_settle(test);
    ck_assert_uint_eq(child.openings, 1);
    fb_close(own.conn);
    scripted_settle(test);
    ck_assert_uint_eq(own.closings, 1);
    ck_assert_int_eq(child.reason, FB_ABORTED);
    scripted_finish(&test);
}
END_TEST

START_TEST(it_ends_with_the_worker)
{
    fb_test *test = scripted_start();
    struct scripted_conn open = { 0 }, begun = { 0 };

    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    connect_with(test, &open, NULL);
    scripted_settle(test);
    connect_with(test, &begun, NULL);
    scripted_finish(&test);
    ck_assert_int_eq(open.reason, FB_DRAINED);
    ck_assert_uint_eq(open.closings, 1);
    ck_assert_uint_eq(begun.closings, 1);
}
END_TEST

static const fb_ops quiet_ops = { .size = sizeof(fb_ops) };

/* With `draining` a connection keeps a draining worker; without `draining` the worker ends. */
START_TEST(a_drain)
{
    fb_test *test = scripted_start();
    struct scripted_conn own = { 0 }, client = { 0 };
    struct stream *stream = &test->workers->worker.stream;
    struct sockaddr_in server = address_of("10.0.0.1", 80);
    fb_connect_options options = { .size = sizeof(options), .address = (void *)&server };
    fb_conn *quiet;

    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    ck_assert(session_is_drained(stream));
    scripted_conn_open(test, &client);
    connect_with(test, &own, NULL);
    quiet = fb_connect_with(fb_test_worker(test), NULL, &quiet_ops, NULL, &options);
    ck_assert_ptr_nonnull(quiet);
    scripted_settle(test);
    fb_test_drain(test, 0);
    ck_assert_uint_eq(own.drainings, 1);
    ck_assert(!session_is_drained(stream));
    fb_close(client.conn);
    scripted_settle(test);
    ck_assert(!session_is_drained(stream));
    fb_close(own.conn);
    scripted_settle(test);
    ck_assert(session_is_drained(stream));
    ck_assert_uint_eq(stream->net.connection_n, 1);
    /* a job may still need a server, and is told */
    connect_with(test, &own, NULL);
    scripted_settle(test);
    ck_assert_uint_eq(own.drainings, 2);
    scripted_finish(&test);
}
END_TEST

/* From `closed`, called at the deadline of a drain, too. */
static void connect_again(struct scripted_conn *script, fb_reason reason)
{
    struct sockaddr_in server = address_of("10.0.0.1", 80);
    fb_connect_options options = { .size = sizeof(options), .address = (void *)&server };

    (void)reason;
    script->other->conn = fb_connect_with(
        fb_worker_of(script->conn), NULL, &scripted_conn_ops, script->other, &options);
}

START_TEST(none_is_made_when_the_worker_ends)
{
    fb_test *test = scripted_start();
    struct scripted_conn other = { 0 }, own = { .closed = connect_again, .other = &other };

    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    connect_with(test, &own, NULL);
    scripted_settle(test);
    fb_test_drain(test, 1000);
    fb_test_pass(test, 999);
    ck_assert_uint_eq(own.closings, 0);
    fb_test_pass(test, 1);
    ck_assert_int_eq(own.reason, FB_DRAINED);
    ck_assert_ptr_null(other.conn);
    scripted_finish(&test);
}
END_TEST

START_TEST(worker_connections_are_the_most)
{
    fb_test_options options = {
        .size = sizeof(options), .server = "scripted;", .worker_connections = 2
    };
    fb_test *test = fb_test_start_with(&fb_protocol_scripted, &options);
    struct scripted_conn a = { 0 }, b = { 0 }, c = { 0 };

    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    ck_assert_ptr_nonnull(connect_with(test, &a, NULL));
    ck_assert_ptr_nonnull(connect_with(test, &b, NULL));
    scripted_settle(test);
    ck_assert_ptr_null(connect_with(test, &c, NULL));
    fb_set_idle(a.conn, 1);
    ck_assert_ptr_nonnull(connect_with(test, &c, NULL)); /* an idle one gives way */
    scripted_settle(test);
    ck_assert_int_eq(a.reason, FB_FINISHED);
    ck_assert_uint_eq(c.openings, 1);
    scripted_finish(&test);
}
END_TEST

/* Equal connections share a record: without a free slot the record is given up once, and outlives
 * the idle connection that gives way. */
START_TEST(worker_connections_are_the_most_of_those_alike)
{
    fb_test_options options = {
        .size = sizeof(options), .server = "scripted;", .worker_connections = 1
    };
    fb_connect_options alike = {
        .size = sizeof(alike), .flags = FB_CONNECT_TCP_KEEPALIVE, .age = 1000
    };
    fb_test *test = fb_test_start_with(&fb_protocol_scripted, &options);
    struct scripted_conn a = { 0 }, b = { 0 };

    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    if (_i == 0)
        ck_assert_ptr_nonnull(connect_with(test, &a, NULL));
    else
        ck_assert_ptr_nonnull(connect_with(test, &a, &alike));
    scripted_settle(test);
    if (_i == 1) {
        fb_keep(a.conn, 10000);
        fb_test_pass(test, 10);
        alike.age = 1; /* too old to be used again */
    }
    ck_assert_int_eq(connect_with(test, &b, &alike) != NULL, _i == 1);
    scripted_settle(test);
    ck_assert_uint_eq(b.openings, (unsigned)_i);
    scripted_finish(&test);
}
END_TEST

/* ---- Options ---- */

START_TEST(it_connects_from_an_address)
{
    fb_test *test = scripted_start();
    struct sockaddr_in local = address_of("192.0.2.7", _i == 0 ? 0 : 4000);
    struct scripted_conn own = { 0 };
    struct sockaddr_storage name;
    char text[120];

    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    connect_with(test, &own, WITH(.local = (struct sockaddr *)&local, .receive_buffer = 65536));
    scripted_settle(test);
    ck_assert_uint_eq(own.openings, 1);
    ck_assert_int_eq(fb_local_address(own.conn, &name), 0);
    fb_address_text(&name, text, sizeof(text));
    ck_assert(_i == 0 ? strncmp(text, "192.0.2.7:", 10) == 0 : strcmp(text, "192.0.2.7:4000") == 0);
    scripted_finish(&test);
}
END_TEST

START_TEST(the_kernel_has_no_such_address)
{
    fb_test *test = scripted_start();
    struct sockaddr_in local = address_of("203.0.113.1", 0);
    struct sockaddr_un path = { .sun_family = AF_UNIX, .sun_path = "/local" };
    const struct sockaddr *addresses[] = { (void *)&local, (void *)&path };
    struct scripted_conn own = { 0 };
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);

    ck_assert_ptr_nonnull(connect_with(test, &own, WITH(.local = addresses[_i])));
    scripted_settle(test);
    ck_assert_uint_eq(own.openings, 0);
    ck_assert_int_eq(own.reason, FB_IO_ERROR);
    ck_assert_uint_eq(server->server->tries, 0);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test),
        _i == 0 ? "[crit] *1 bind() to 203.0.113.1:0 failed (99: Cannot assign requested "
                  "address), upstream: \"10.0.0.1:80\"\n"
                : "[error] *1 bind() to unix:/local failed (97: Address family not supported by "
                  "protocol), upstream: \"10.0.0.1:80\"\n"));
    scripted_finish(&test);
}
END_TEST

/* ... except for a connection with the permission. */
START_TEST(it_connects_from_the_address_of_another)
{
    fb_test *test = scripted_start();
    struct sockaddr_in local = address_of("203.0.113.1", 0);
    struct scripted_conn own = { 0 };

    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    connect_with(
        test, &own, WITH(.local = (struct sockaddr *)&local, .flags = FB_CONNECT_TRANSPARENT));
    scripted_settle(test);
    ck_assert_uint_eq(own.openings, 1);
    scripted_finish(&test);
}
END_TEST

START_TEST(the_kernel_asks_a_silent_server)
{
    fb_test *test = scripted_start();
    struct scripted_conn own = { 0 };
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);

    connect_with(test, &own, WITH(.flags = _i == 0 ? 0 : FB_CONNECT_TCP_KEEPALIVE));
    scripted_settle(test);
    ck_assert(fb_test_accept(server)->socket->keepalive == (_i == 1));
    scripted_finish(&test);
}
END_TEST

START_TEST(a_lasting_target_is_not_copied)
{
    fb_test *test = scripted_start();
    struct scripted_conn client = { 0 }, server = { 0 };
    fb_connect_options options = { .size = sizeof(options) };
    struct fb_target target = { .text = SERVER };
    const struct session_conn *session;

    ck_assert_ptr_null(address_parse(SERVER, 0, &target.address));
    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    scripted_conn_open(test, &client);
    options.owner = client.conn;
    options.flags = _i == 0 ? 0 : FB_CONNECT_LASTING;
    server.conn =
        fb_connect_with(fb_test_worker(test), &target, &scripted_conn_ops, &server, &options);
    ck_assert_ptr_nonnull(server.conn);
    session = server.conn->session;
    ck_assert((session_target_of(session) == &target) == (_i == 1));
    ck_assert((session->lasting == NULL) == (_i == 1));
    ck_assert_ptr_null(session_trunk_of(session));
    scripted_settle(test);
    ck_assert_uint_eq(server.openings, 1);
    scripted_finish(&test);
}
END_TEST

static int error_seen;

static void see_error(struct scripted_conn *script, fb_reason reason)
{
    (void)reason;
    error_seen = fb_error_of(script->conn);
}

START_TEST(the_errno_is_told)
{
    static const int errors[] = { ECONNREFUSED, ETIMEDOUT, ECONNRESET, 0 };
    static const fb_test_reply replies[] = { FB_TEST_REFUSES, FB_TEST_SILENT, FB_TEST_ACCEPTS,
        FB_TEST_ACCEPTS };
    fb_test *test = scripted_start();
    struct scripted_conn own = { .closed = see_error };
    fb_test_server *server = fb_test_serve(test, SERVER, replies[_i]);

    error_seen = -1;
    connect_with(test, &own, WITH(.timeout = 3000));
    scripted_settle(test);
    if (_i == 2)
        fb_test_reset(fb_test_accept(server));
    if (_i == 3)
        fb_test_shut(fb_test_accept(server));
    fb_test_pass(test, 2999);
    ck_assert_uint_eq(own.closings, _i != 1);
    fb_test_pass(test, 1);
    ck_assert_uint_eq(own.closings, 1);
    ck_assert_int_eq(error_seen, errors[_i]);
    scripted_finish(&test);
}
END_TEST

START_TEST(the_level_of_its_failure)
{
    static const struct {
        uint32_t level;
        const char *line;
    } levels[] = {
        { 0, "[error] *1 connect() failed (111: Connection refused), upstream: \"10.0.0.1:80\"\n" },
        { FB_LOG_WARN, "[warn] *1 connect() failed" },
        { FB_LOG_DEBUG, "[debug] *1 connect() failed" },
        { 77, "[debug] *1 connect() failed" },
    };
    fb_test *test = scripted_start();
    struct scripted_conn own = { 0 };

    connect_with(test, &own, WITH(.log_level = levels[_i].level));
    scripted_settle(test);
    ck_assert_int_eq(own.reason, FB_REFUSED);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), levels[_i].line));
    scripted_finish(&test);
}
END_TEST

/* The try behind a shortage of descriptors has the same options. */
START_TEST(without_a_descriptor_it_is_tried_again)
{
    fb_test *test = scripted_start();
    struct sockaddr_in local = address_of("192.0.2.7", 4000);
    struct scripted_conn own = { 0 };
    struct sockaddr_storage name;

    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    test->sim->connect_error = EMFILE;
    ck_assert_ptr_nonnull(connect_with(test, &own, WITH(.local = (struct sockaddr *)&local)));
    if (_i == 0)
        test->sim->connect_error = 0;
    scripted_settle(test);
    ck_assert_uint_eq(own.openings, _i == 0);
    if (_i == 0) {
        ck_assert_int_eq(fb_local_address(own.conn, &name), 0);
        ck_assert_int_eq(ntohs(((struct sockaddr_in *)&name)->sin_port), 4000);
    }
    scripted_finish(&test);
}
END_TEST

START_TEST(what_is_no_address)
{
    struct sockaddr_in no_port = address_of("10.0.0.1", 0);
    struct sockaddr_un no_path = { .sun_family = AF_UNIX };
    struct sockaddr other = { .sa_family = AF_APPLETALK };
    const struct sockaddr *addresses[] = { (void *)&no_port, (void *)&no_path, &other };
    fb_test *test = scripted_start();
    struct scripted_conn client = { 0 }, own = { 0 };

    scripted_conn_open(test, &client);
    ck_assert_ptr_null(connect_with(test, &own, WITH(.address = addresses[_i])));
    ck_assert_ptr_null(fb_target_from(client.conn, addresses[_i]));
    scripted_finish(&test);
}
END_TEST

START_TEST(a_target_from_an_address)
{
    struct sockaddr_un path = { .sun_family = AF_UNIX, .sun_path = "/server" };
    fb_test *test = scripted_start();
    struct scripted_conn client = { 0 }, a = { 0 }, b = { 0 };
    const fb_target *target;

    fb_test_serve(test, "unix:/server", FB_TEST_ACCEPTS);
    scripted_conn_open(test, &client);
    target = fb_target_from(client.conn, (struct sockaddr *)&path);
    ck_assert_ptr_nonnull(target);
    a.conn = fb_connect(client.conn, target, &scripted_conn_ops, &a);
    connect_with(test, &b, WITH(.address = (struct sockaddr *)&path, .owner = client.conn));
    scripted_settle(test);
    ck_assert_uint_eq(a.openings + b.openings, 2);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_worker_has_a_connection_of_its_own);
    tcase_add_test(tc, it_owns_others);
    tcase_add_test(tc, it_ends_with_the_worker);
    tcase_add_test(tc, a_drain);
    tcase_add_test(tc, none_is_made_when_the_worker_ends);
    tcase_add_test(tc, worker_connections_are_the_most);
    tcase_add_loop_test(tc, worker_connections_are_the_most_of_those_alike, 0, 2);
    tcase_add_loop_test(tc, it_connects_from_an_address, 0, 2);
    tcase_add_loop_test(tc, the_kernel_has_no_such_address, 0, 2);
    tcase_add_test(tc, it_connects_from_the_address_of_another);
    tcase_add_loop_test(tc, the_kernel_asks_a_silent_server, 0, 2);
    tcase_add_loop_test(tc, a_lasting_target_is_not_copied, 0, 2);
    tcase_add_loop_test(tc, the_errno_is_told, 0, 4);
    tcase_add_loop_test(tc, the_level_of_its_failure, 0, 4);
    tcase_add_loop_test(tc, without_a_descriptor_it_is_tried_again, 0, 2);
    tcase_add_loop_test(tc, what_is_no_address, 0, 3);
    tcase_add_test(tc, a_target_from_an_address);
}

TEST_MAIN("own", add_tests)

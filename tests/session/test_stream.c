/* SPDX-License-Identifier: BSD-2-Clause */
/* The server of a connection: on the kernel's sockets, with their local address. */
#include "net/address_parse.h"
#include "session/conn.h"
#include "session/session.h"
#include "support/fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

struct wildcard {
    struct fixture *fixture;
    struct binding bindings[3]; /* beside the wildcard's */
    int listener;
    in_port_t port;
};

static const char *const hosts[] = { "127.0.0.2", "127.0.0.3", "127.0.0.4" };

/* A wildcard's socket with three further addresses. */
static struct wildcard *open_wildcard(void)
{
    struct wildcard *wildcard = calloc(1, sizeof(*wildcard));
    struct sockaddr_in any = { .sin_family = AF_INET };
    socklen_t length = sizeof(any);

    ck_assert_ptr_nonnull(wildcard);
    wildcard->fixture = fixture_start_stream_on(mechanism_find(NULL), 16);
    wildcard->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ne(wildcard->listener, -1);
    ck_assert_int_eq(bind(wildcard->listener, (struct sockaddr *)&any, sizeof(any)), 0);
    ck_assert_int_eq(listen(wildcard->listener, 16), 0);
    ck_assert_int_eq(getsockname(wildcard->listener, (struct sockaddr *)&any, &length), 0);
    wildcard->port = ntohs(any.sin_port);
    for (int i = 0; i < 3; i++) {
        struct binding *binding = &wildcard->bindings[i];

        ck_assert_ptr_null(address_parse(hosts[i], wildcard->port, &binding->address));
        binding->kind = BINDING_KIND;
        binding->server = &wildcard->fixture->server.server;
        binding->ops = &session_conn_ops;
        address_format(&binding->address, true, binding->text);
        STAILQ_INSERT_TAIL(&wildcard->fixture->server.port.bindings, binding, link);
    }
    wildcard->fixture->server.port.several = true;
    return wildcard;
}

static void close_wildcard(struct wildcard *wildcard)
{
    scripted_end_sessions(wildcard->fixture);
    fixture_stop(wildcard->fixture);
    close(wildcard->listener);
    free(wildcard);
}

/* The binding for a client of the address. */
static struct binding *serve_client(struct wildcard *wildcard, const char *host)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(wildcard->port) }, peer;
    socklen_t length = sizeof(peer);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), served;
    struct fb_conn *conn;

    address.sin_addr.s_addr = inet_addr(host);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    served = accept4(
        wildcard->listener, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ne(served, -1);
    conn = session_accept(wildcard->fixture->stream, &wildcard->fixture->server.port, served,
        (struct sockaddr *)&peer);
    ck_assert_ptr_nonnull(conn);
    conn_open_soon(conn);
    close(client);
    return conn->owner;
}

START_TEST(clients_are_told_apart_by_the_address_they_came_to)
{
    struct wildcard *wildcard = open_wildcard();

    for (int i = 0; i < 3; i++)
        ck_assert_ptr_eq(serve_client(wildcard, hosts[i]), &wildcard->bindings[i]);
    ck_assert_ptr_eq(serve_client(wildcard, "127.0.0.1"),
        &wildcard->fixture->server.binding); /* the wildcard's */
    ck_assert_ptr_eq(serve_client(wildcard, "127.0.0.5"), &wildcard->fixture->server.binding);
    close_wildcard(wildcard);
}
END_TEST

START_TEST(without_others_the_first_serves_all)
{
    struct wildcard *wildcard = open_wildcard();

    wildcard->fixture->server.port.several = false;
    ck_assert_ptr_eq(serve_client(wildcard, hosts[1]), &wildcard->fixture->server.binding);
    close_wildcard(wildcard);
}
END_TEST

START_TEST(the_log_names_the_address)
{
    struct wildcard *wildcard = open_wildcard();
    char expected[256];

    serve_client(wildcard, hosts[1]);
    fixture_run(wildcard->fixture);
    fixture_end_all(wildcard->fixture);
    snprintf(
        expected, sizeof(expected), ", client: 127.0.0.1, server: 127.0.0.3:%u\n", wildcard->port);
    ck_assert_ptr_nonnull(strstr(fixture_logged(wildcard->fixture), expected));
    close_wildcard(wildcard);
}
END_TEST

START_TEST(a_unix_client_has_no_name)
{
    struct fixture *fixture = fixture_start_stream_on(mechanism_find(NULL), 1);
    struct sockaddr_un peer = { .sun_family = AF_UNIX };
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    fixture->server.port.several = true;
    conn_open_soon(
        session_accept(fixture->stream, &fixture->server.port, fds[0], (struct sockaddr *)&peer));
    while (fixture->server.record.openings == 0)
        fixture_run(fixture);
    fixture_end_all(fixture);
    ck_assert_str_eq(fixture_logged_all(fixture),
        "t: [info] *1 client unix: connected to 192.0.2.7:77\n"
        "t: [info] *1 client disconnected, bytes from/to client:0/0, session time: 0.000, reason: "
        "the worker ends, client: unix:, server: 192.0.2.7:77\n");
    close(fds[1]);
    fixture_stop(fixture);
}
END_TEST

START_TEST(without_a_slot_the_descriptor_is_closed)
{
    struct fixture *fixture = fixture_start_stream_on(mechanism_find(NULL), 1);
    struct sockaddr_un peer = { .sun_family = AF_UNIX };
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    conn_open_soon(
        session_accept(fixture->stream, &fixture->server.port, fds[0], (struct sockaddr *)&peer));
    ck_assert_ptr_null(
        session_accept(fixture->stream, &fixture->server.port, fds[1], (struct sockaddr *)&peer));
    ck_assert_int_eq(fcntl(fds[1], F_GETFD), -1);
    ck_assert_int_eq(errno, EBADF);
    ck_assert_uint_eq(fixture_count(fixture, COUNTER_HANDLED), 1);
    fixture_run(fixture);
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_client_that_ends_before_it_is_opened_is_not_usable)
{
    struct fixture *fixture = fixture_start_stream_on(mechanism_find(NULL), 1);
    struct sockaddr_un peer = { .sun_family = AF_UNIX };
    struct fb_conn *conn;
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    conn = session_accept(fixture->stream, &fixture->server.port, fds[0], (struct sockaddr *)&peer);
    conn_open_soon(conn);
    ck_assert(session_is_usable(conn));
    fixture_end_all(fixture);
    ck_assert_uint_eq(fixture->server.record.openings + fixture->server.record.closings, 0);
    ck_assert(!session_is_usable(conn));
    close(fds[1]);
    fixture_stop(fixture);
}
END_TEST

/* Two protocols do not share a state. */
START_TEST(each_protocol_has_its_own_slab)
{
    struct fixture *fixture = fixture_start_stream(4);
    struct server second = fixture->server.server;
    fb_protocol other = fixture->server.protocol;
    char *states[2];

    other.conn_state = 1000;
    second.protocol = &other;
    second.protocol_index = STREAM_PROTOCOLS_MAX - 1;
    scripted_connect(fixture);
    states[0] = fixture->server.record.state;
    fixture->server.binding.server = &second;
    scripted_connect(fixture);
    states[1] = fixture->server.record.state;
    ck_assert(states[1] + 1000 <= states[0] || states[0] + SCRIPTED_STATE <= states[1]);
    memset(states[1], 0xff, 1000);
    for (int i = 0; i < SCRIPTED_STATE; i++)
        ck_assert_int_eq(states[0][i], 0);
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, clients_are_told_apart_by_the_address_they_came_to);
    tcase_add_test(tcase, without_others_the_first_serves_all);
    tcase_add_test(tcase, the_log_names_the_address);
    tcase_add_test(tcase, a_unix_client_has_no_name);
    tcase_add_test(tcase, without_a_slot_the_descriptor_is_closed);
    tcase_add_test(tcase, a_client_that_ends_before_it_is_opened_is_not_usable);
    tcase_add_test(tcase, each_protocol_has_its_own_slab);
}

TEST_MAIN("stream", add_tests)

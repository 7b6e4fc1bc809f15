/* SPDX-License-Identifier: BSD-2-Clause */
/* Which server a connection belongs to: on the kernel's sockets, which know their own address. */
#include "stream/stage.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

struct house {
    struct stage *stage;
    struct binding bindings[3]; /* beside the wildcard's */
    int listener;
    in_port_t port;
};

static const char *const hosts[] = { "127.0.0.2", "127.0.0.3", "127.0.0.4" };

/* A wildcard's socket that takes in three other addresses. */
static struct house *build(void)
{
    struct house *house = calloc(1, sizeof(*house));
    struct sockaddr_in any = { .sin_family = AF_INET };
    socklen_t length = sizeof(any);

    ck_assert_ptr_nonnull(house);
    house->stage = stage_with(mechanism_find(NULL), 16);
    house->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ne(house->listener, -1);
    ck_assert_int_eq(bind(house->listener, (struct sockaddr *)&any, sizeof(any)), 0);
    ck_assert_int_eq(listen(house->listener, 16), 0);
    ck_assert_int_eq(getsockname(house->listener, (struct sockaddr *)&any, &length), 0);
    house->port = ntohs(any.sin_port);
    for (int i = 0; i < 3; i++) {
        struct binding *binding = &house->bindings[i];

        ck_assert_ptr_null(address_parse(hosts[i], house->port, &binding->address));
        binding->server = &house->stage->server;
        address_format(&binding->address, true, binding->text);
        STAILQ_INSERT_TAIL(&house->stage->port.bindings, binding, link);
    }
    house->stage->port.several = true;
    return house;
}

static void pull_down(struct house *house)
{
    stage_end(house->stage);
    stage_tear_down(house->stage);
    close(house->listener);
    free(house);
}

/* The binding that a client of the address is given to. */
static struct binding *visit(struct house *house, const char *host)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(house->port) }, peer;
    socklen_t length = sizeof(peer);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), served;
    struct fb_conn *conn;

    address.sin_addr.s_addr = inet_addr(host);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    served =
        accept4(house->listener, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ck_assert_int_ne(served, -1);
    conn = session_start(
        &house->stage->worker.stream, &house->stage->port, served, (struct sockaddr *)&peer);
    ck_assert_ptr_nonnull(conn);
    close(client);
    return conn->owner;
}

START_TEST(clients_are_told_apart_by_the_address_they_came_to)
{
    struct house *house = build();

    for (int i = 0; i < 3; i++)
        ck_assert_ptr_eq(visit(house, hosts[i]), &house->bindings[i]);
    ck_assert_ptr_eq(visit(house, "127.0.0.1"), &house->stage->binding); /* the wildcard's */
    ck_assert_ptr_eq(visit(house, "127.0.0.5"), &house->stage->binding);
    pull_down(house);
}
END_TEST

START_TEST(without_others_the_first_serves_all)
{
    struct house *house = build();

    house->stage->port.several = false;
    ck_assert_ptr_eq(visit(house, hosts[1]), &house->stage->binding);
    pull_down(house);
}
END_TEST

START_TEST(the_log_names_the_address)
{
    struct house *house = build();
    char expected[256];

    visit(house, hosts[1]);
    stage_run(house->stage);
    net_fail_all(&house->stage->worker.stream.net, FB_DRAINED);
    snprintf(
        expected, sizeof(expected), ", client: 127.0.0.1, server: 127.0.0.3:%u\n", house->port);
    ck_assert_ptr_nonnull(strstr(stage_logged(house->stage), expected));
    pull_down(house);
}
END_TEST

START_TEST(a_unix_client_has_no_name)
{
    struct stage *stage = stage_with(mechanism_find(NULL), 1);
    struct sockaddr_un peer = { .sun_family = AF_UNIX };
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    stage->port.several = true;
    ck_assert_ptr_nonnull(
        session_start(&stage->worker.stream, &stage->port, fds[0], (struct sockaddr *)&peer));
    while (stage->record.openings == 0)
        stage_run(stage);
    net_fail_all(&stage->worker.stream.net, FB_DRAINED);
    ck_assert_str_eq(stage_logged(stage),
        "t: [info] *1 session ended: the worker ends, client: unix:, server: 192.0.2.7:77\n");
    close(fds[1]);
    stage_tear_down(stage);
}
END_TEST

START_TEST(without_a_slot_the_descriptor_is_closed)
{
    struct stage *stage = stage_with(mechanism_find(NULL), 1);
    struct sockaddr_un peer = { .sun_family = AF_UNIX };
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    ck_assert_ptr_nonnull(
        session_start(&stage->worker.stream, &stage->port, fds[0], (struct sockaddr *)&peer));
    ck_assert_ptr_null(
        session_start(&stage->worker.stream, &stage->port, fds[1], (struct sockaddr *)&peer));
    ck_assert_int_eq(fcntl(fds[1], F_GETFD), -1);
    ck_assert_int_eq(errno, EBADF);
    ck_assert_uint_eq(stage->shared->slots[stage->slot.slot].counters.n[COUNTER_HANDLED], 1);
    stage_run(stage);
    stage_end(stage);
    stage_tear_down(stage);
}
END_TEST

/* Two protocols do not share a state. */
START_TEST(each_protocol_has_its_own_slab)
{
    struct stage *stage = stage_set_up(4);
    struct server second = stage->server;
    fb_protocol other = stage->protocol;
    char *states[2];

    other.conn_state = 1000;
    second.protocol = &other;
    second.protocol_index = STREAM_PROTOCOLS_MAX - 1;
    stage_connect(stage);
    states[0] = stage->record.state;
    stage->binding.server = &second;
    stage_connect(stage);
    states[1] = stage->record.state;
    ck_assert(states[1] + 1000 <= states[0] || states[0] + STAGE_STATE <= states[1]);
    memset(states[1], 0xff, 1000);
    for (int i = 0; i < STAGE_STATE; i++)
        ck_assert_int_eq(states[0][i], 0);
    stage_end(stage);
    stage_tear_down(stage);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, clients_are_told_apart_by_the_address_they_came_to);
    tcase_add_test(tcase, without_others_the_first_serves_all);
    tcase_add_test(tcase, the_log_names_the_address);
    tcase_add_test(tcase, a_unix_client_has_no_name);
    tcase_add_test(tcase, without_a_slot_the_descriptor_is_closed);
    tcase_add_test(tcase, each_protocol_has_its_own_slab);
}

TEST_MAIN("stream", add_tests)

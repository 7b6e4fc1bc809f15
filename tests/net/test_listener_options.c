/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of listening sockets: set at the open or the commit, and changed on kept ones. */
#include "net/listening.h"
#include "support/test.h"

#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

static const char *const inet_hosts[] = { "127.0.0.1", "[::1]" };

/* The number of connections that may wait at a listening socket. */
static unsigned backlog_of(int fd)
{
    struct tcp_info info;
    socklen_t length = sizeof(info);

    ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
    ck_assert_int_eq(info.tcpi_state, TCP_LISTEN);
    return info.tcpi_sacked;
}

static unsigned somaxconn(void)
{
    FILE *file = fopen("/proc/sys/net/core/somaxconn", "re");
    unsigned n;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%u", &n), 1);
    fclose(file);
    return n;
}

START_TEST(the_backlog_can_change)
{
    struct listening *listening = listening_start();
    struct listener_options options = listener_defaults;
    struct listener *listener;

    ck_assert_int_eq(options.backlog, 511);
    options.backlog = 17;
    listener = listening_open(listening, "127.0.0.1", &options, NULL, 1);
    listening_commit(listening, listener);
    ck_assert_uint_eq(backlog_of(listener->fds[0]), 17);
    listener->options.backlog = 33;
    listening_commit(listening, listener);
    ck_assert_uint_eq(backlog_of(listener->fds[0]), 33);
    listener->options.backlog = -1;
    listening_commit(listening, listener);
    ck_assert_uint_eq(backlog_of(listener->fds[0]), somaxconn());
    listener_close(listener);
    listening_stop(listening);
}
END_TEST

static const struct {
    const char *name;
    int level, option, value;
} set_options[] = {
    { "SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 2 * 16384 }, /* the kernel shows the double */
    { "SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, 2 * 32768 },
    { "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 1 },
    { "TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 77 },
    { "TCP_KEEPINTVL", IPPROTO_TCP, TCP_KEEPINTVL, 7 },
    { "TCP_KEEPCNT", IPPROTO_TCP, TCP_KEEPCNT, 3 },
    { "TCP_FASTOPEN", IPPROTO_TCP, TCP_FASTOPEN, 5 },
    { "TCP_DEFER_ACCEPT", IPPROTO_TCP, TCP_DEFER_ACCEPT, 1 },
    { "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 1 },
};

START_TEST(options_are_set_at_commit_and_taken_back)
{
    struct listening *listening = listening_start();
    struct listener_options plain = listener_defaults;
    struct listener *old = listening_open(listening, inet_hosts[_i], &every_option, NULL, 1), *new;
    int untouched = socket(old->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    for (size_t i = 0; i < countof(set_options); i++)
        ck_assert_msg(option_of(old->fds[0], set_options[i].level, set_options[i].option) ==
                          option_of(untouched, set_options[i].level, set_options[i].option),
            "%s is set before commit", set_options[i].name);
    listening_commit(listening, old);
    for (size_t i = 0; i < countof(set_options); i++)
        ck_assert_msg(option_of(old->fds[0], set_options[i].level, set_options[i].option) ==
                          set_options[i].value,
            "%s is not set", set_options[i].name);

    plain.tcp_nodelay = false;
    new = listening_open(listening, old->text, &plain, old, 1);
    listening_commit(listening, new);
    for (size_t i = 2; i < countof(set_options); i++) /* sizes stay */
        ck_assert_msg(option_of(new->fds[0], set_options[i].level, set_options[i].option) ==
                          option_of(untouched, set_options[i].level, set_options[i].option),
            "%s is not taken back", set_options[i].name);
    listener_close(new);
    close(untouched);
    listening_stop(listening);
}
END_TEST

START_TEST(accepted_connections_inherit_nodelay)
{
    struct listening *listening = listening_start();
    struct listener_options options = listener_defaults;
    struct listener *listener;
    int client, server;

    options.tcp_nodelay = _i == 1;
    listener = listening_open(listening, "127.0.0.1", &options, NULL, 1);
    listening_commit(listening, listener);
    client = try_connect(&listener->address);
    ck_assert_int_ne(client, -1);
    accept_next(listener, &server);
    ck_assert_int_eq(option_of(server, IPPROTO_TCP, TCP_NODELAY), _i == 1);
    close(client);
    close(server);
    listener_close(listener);
    listening_stop(listening);
}
END_TEST

START_TEST(a_refused_option_is_said)
{
    struct listening *listening = listening_start();
    struct listener_options options = listener_defaults;
    struct listener *in, *in6, *new;
    char expected[512];

    options.keepidle = 40000;
    in = listening_open(listening, "127.0.0.1", &options, NULL, 1);
    ck_assert_int_eq(listener_commit(in, &(struct listener_system) { 0 }, &listening->log.log), 0);
    snprintf(expected, sizeof(expected),
        "t: [alert] setsockopt(TCP_KEEPIDLE, 40000) %s failed, ignored (22: Invalid argument)\n",
        in->text);
    ck_assert_str_eq(memory_log_take(&listening->log), expected);
    ck_assert_uint_eq(slot_of_a_client(in), 0);

    in6 = listening_open(listening, "[::1]", NULL, NULL, 1);
    listening_commit(listening, in6);
    options = listener_defaults;
    options.ipv6only = false;
    new = listening_open(listening, in6->text, &options, in6, 1);
    ck_assert_int_eq(listener_commit(new, &(struct listener_system) { 0 }, &listening->log.log), 0);
    snprintf(expected, sizeof(expected),
        "t: [warn] ipv6only=off is ignored: %s is open already, and is kept as it is\n", new->text);
    ck_assert_str_eq(memory_log_take(&listening->log), expected);
    listener_close(in);
    listener_close(new);
    listening_stop(listening);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_backlog_can_change);
    tcase_add_loop_test(tcase, options_are_set_at_commit_and_taken_back, 0, countof(inet_hosts));
    tcase_add_loop_test(tcase, accepted_connections_inherit_nodelay, 0, 2);
    tcase_add_test(tcase, a_refused_option_is_said);
}

TEST_MAIN("listener_options", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of listening sockets: set at the open or the commit, and changed on kept ones. */
#include "net/listener_open.h"
#include "net/listener_options.h"
#include "net/listening.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const inet_hosts[] = { "127.0.0.1", "[::1]" };

/* The number of connections allowed to wait at a listening socket. */
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
        "t: [warn] ipv6only=off is ignored: %s is open already, and stays unchanged\n", new->text);
    ck_assert_str_eq(memory_log_take(&listening->log), expected);
    listener_close(in);
    listener_close(new);
    listening_stop(listening);
}
END_TEST

/* Options settable by a worker: put back at a death and at a reload. */
static const struct {
    const char *name;
    int level, option, value;
} touched[] = {
    { "SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 2304 },
    { "SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, 4608 },
    { "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 1 },
    { "SO_RCVLOWAT", SOL_SOCKET, SO_RCVLOWAT, 4096 },
    { "SO_DONTROUTE", SOL_SOCKET, SO_DONTROUTE, 1 },
    { "SO_PRIORITY", SOL_SOCKET, SO_PRIORITY, 3 },
    { "SO_INCOMING_CPU", SOL_SOCKET, SO_INCOMING_CPU, 0 },
    { "SO_MAX_PACING_RATE", SOL_SOCKET, SO_MAX_PACING_RATE, 1 },
    { "SO_BINDTOIFINDEX", SOL_SOCKET, 62, 1 },
    { "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 0 },
    { "TCP_CORK", IPPROTO_TCP, TCP_CORK, 1 },
    { "TCP_DEFER_ACCEPT", IPPROTO_TCP, TCP_DEFER_ACCEPT, 1 },
    { "TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 1 },
    { "TCP_FASTOPEN", IPPROTO_TCP, TCP_FASTOPEN, 9 },
    { "TCP_LINGER2", IPPROTO_TCP, TCP_LINGER2, 1 },
    { "TCP_NOTSENT_LOWAT", IPPROTO_TCP, TCP_NOTSENT_LOWAT, 1 },
    { "TCP_SYNCNT", IPPROTO_TCP, TCP_SYNCNT, 1 },
    { "TCP_USER_TIMEOUT", IPPROTO_TCP, TCP_USER_TIMEOUT, 1 },
    { "IP_MINTTL", IPPROTO_IP, IP_MINTTL, 255 },
    { "IP_TTL", IPPROTO_IP, IP_TTL, 1 },
    { "IP_TOS", IPPROTO_IP, IP_TOS, 16 },
};

static void touch(int fd)
{
    static const struct linger slow = { .l_onoff = 1, .l_linger = 3600 };

    for (size_t i = 0; i < countof(touched); i++)
        if (setsockopt(fd, touched[i].level, touched[i].option, &touched[i].value, sizeof(int)) ==
            -1)
            ck_assert_int_eq(errno, ENOPROTOOPT); /* an older kernel, or another family */
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &slow, sizeof(slow)), 0);
    ck_assert_int_eq(fcntl(fd, F_SETFL, 0), 0);
}

static void check_untouched(int fd, const int *before)
{
    struct linger linger;
    socklen_t length = sizeof(linger);

    for (size_t i = 0; i < countof(touched); i++)
        ck_assert_msg(before[i] == option_of(fd, touched[i].level, touched[i].option),
            "%s is %d, not %d", touched[i].name, option_of(fd, touched[i].level, touched[i].option),
            before[i]);
    ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length), 0);
    ck_assert_int_eq(linger.l_onoff, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(option_of(fd, SOL_SOCKET, 72) & 3, 0); /* SO_BUF_LOCK: the kernel sizes */
}

/* _i: the family, and whether at a start that adopts the socket. */
START_TEST(touched_options_are_put_back)
{
    struct listening *listening = listening_start();
    struct listener *listener = listening_open(listening, inet_hosts[_i % 2], NULL, NULL, 1);
    struct listener_system system = { .restores = true };
    int fd = listener->fds[0], before[countof(touched)];

    listening_commit(listening, listener);
    for (size_t i = 0; i < countof(touched); i++)
        before[i] = option_of(fd, touched[i].level, touched[i].option);
    touch(fd);
    if (_i < 2) {
        listener_restore(listener, fd, &system, &listening->log.log);
        ck_assert_ptr_nonnull(strstr(memory_log_take(&listening->log), "are put back: "));
    } else {
        listener = listening_open(listening, listener->text, NULL, listener, 1);
        ck_assert_int_eq(listener_commit(listener, &system, &listening->log.log), 0);
    }
    check_untouched(fd, before);
    ck_assert_uint_eq(slot_of_a_client(listener), 0);
    listener_close(listener);
    listening_stop(listening);
}
END_TEST

/* An option that the service manager has set stays, and is put back. */
START_TEST(options_of_the_manager_are_recorded)
{
    struct listening *listening = listening_start();
    struct listener *passed = listening_open(listening, "127.0.0.1", NULL, NULL, 1), *listener;
    struct listener_system system = { .restores = true };
    int fd = passed->fds[0], ttl = 33, worse = 1;

    passed->foreign = true;
    ck_assert_int_eq(setsockopt(fd, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl)), 0);
    listener = listening_open(listening, passed->text, NULL, passed, 1);
    listening_commit(listening, listener);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(setsockopt(fd, IPPROTO_IP, IP_TTL, &worse, sizeof(worse)), 0);
        listener_restore(listener, fd, &system, &listening->log.log);
        ck_assert_ptr_nonnull(strstr(memory_log_take(&listening->log), "are put back: 1"));
        ck_assert_int_eq(option_of(fd, IPPROTO_IP, IP_TTL), ttl);
        listener = listening_open(listening, listener->text, NULL, listener, 1); /* a reload */
        listening_commit(listening, listener);
    }
    listener_close(listener);
    listening_stop(listening);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_backlog_can_change);
    tcase_add_loop_test(tcase, options_are_set_at_commit_and_taken_back, 0, countof(inet_hosts));
    tcase_add_loop_test(tcase, accepted_connections_inherit_nodelay, 0, 2);
    tcase_add_test(tcase, a_refused_option_is_said);
    tcase_add_loop_test(tcase, touched_options_are_put_back, 0, 2 * countof(inet_hosts));
    tcase_add_test(tcase, options_of_the_manager_are_recorded);
}

TEST_MAIN("listener_options", add_tests)

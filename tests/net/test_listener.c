/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners of TCP: opening, handing over to a successor, sockets of reuseport, and failures. */
#include "net/listener_open.h"
#include "net/listener_options.h"
#include "net/listener_set.h"
#include "net/listening.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *const inet_hosts[] = { "127.0.0.1", "[::1]" };

START_TEST(prepared_is_not_listening)
{
    struct listening *listening = listening_start();
    struct listener *listener = listening_open(listening, inet_hosts[_i], NULL, NULL, 3);
    char expected[ADDRESS_TEXT];

    ck_assert_uint_eq(listener->fd_n, 1);
    ck_assert_uint_ne(address_port(&listener->address), 0);
    address_format(&listener->address, true, expected);
    ck_assert_str_eq(listener->text, expected);
    ck_assert(!listener->adopted);
    ck_assert_int_eq(try_connect(&listener->address), -1);
    ck_assert_int_eq(errno, ECONNREFUSED);

    listening_commit(listening, listener);
    ck_assert_uint_eq(slot_of_a_client(listener), 0);

    listener_close(listener);
    ck_assert_int_eq(listener->fds[0], -1);
    listening_stop(listening);
}
END_TEST

START_TEST(sockets_are_made_ready_before_bind)
{
    struct listening *listening = listening_start();
    struct listener_options options = listener_defaults;
    struct listener *only, *both;

    only = listening_open(listening, "[::1]", &options, NULL, 1);
    options.ipv6only = false;
    options.reuseport = true;
    both = listening_open(listening, "[::]", &options, NULL, 2);
    ck_assert_uint_eq(both->fd_n, 2);

    ck_assert_int_eq(option_of(only->fds[0], IPPROTO_IPV6, IPV6_V6ONLY), 1);
    ck_assert_int_eq(option_of(only->fds[0], SOL_SOCKET, SO_REUSEPORT), 0);
    ck_assert_int_eq(option_of(both->fds[0], IPPROTO_IPV6, IPV6_V6ONLY), 0);
    ck_assert_int_eq(option_of(both->fds[0], SOL_SOCKET, SO_REUSEPORT), 1);
    ck_assert_int_eq(option_of(both->fds[1], SOL_SOCKET, SO_REUSEPORT), 1);
    for (unsigned i = 0; i < both->fd_n; i++) {
        ck_assert_int_ne(option_of(both->fds[i], SOL_SOCKET, SO_REUSEADDR), 0);
        ck_assert_int_eq(fcntl(both->fds[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        ck_assert_int_eq(fcntl(both->fds[i], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    }
    listener_undo_open(only, NULL);
    listener_undo_open(both, NULL);
    listening_stop(listening);
}
END_TEST

START_TEST(a_port_in_use_is_one_line)
{
    struct listening *listening = listening_start();
    struct listener *first = listening_open(listening, "127.0.0.1", NULL, NULL, 1), *second;
    char expected[256];

    listening_commit(listening, first);
    second = listening_create(listening, first->text, NULL);
    ck_assert_int_eq(listener_open(second, NULL, 1, &listening->log.log), -1);
    snprintf(expected, sizeof(expected),
        "t: [emerg] bind() to %s failed (98: Address already in use)\n", first->text);
    ck_assert_str_eq(memory_log_take(&listening->log), expected);
    ck_assert_int_eq(second->fds[0], -1);
    listener_close(first);
    listening_stop(listening);
}
END_TEST

START_TEST(a_lost_race_is_told_by_commit)
{
    struct listening *listening = listening_start();
    struct listener *first = listening_open(listening, "127.0.0.1", NULL, NULL, 1), *second;
    char expected[256];

    /* SO_REUSEADDR lets both bind as long as neither listens */
    second = listening_open(listening, first->text, NULL, NULL, 1);
    listening_commit(listening, first);
    ck_assert_int_eq(
        listener_commit(second, &(struct listener_system) { 0 }, &listening->log.log), -1);
    snprintf(expected, sizeof(expected),
        "t: [emerg] listen() to %s, backlog 511 failed (98: Address already in use)\n",
        first->text);
    ck_assert_str_eq(memory_log_take(&listening->log), expected);
    listener_close(first);
    listener_close(second);
    listening_stop(listening);
}
END_TEST

START_TEST(a_kept_socket_is_the_same_descriptor)
{
    struct listening *listening = listening_start();
    struct listener *old = listening_open(listening, "127.0.0.1", NULL, NULL, 1), *new;
    int fd = old->fds[0];

    listening_commit(listening, old);
    new = listening_open(listening, old->text, NULL, old, 2);
    ck_assert(new->adopted);
    ck_assert_uint_eq(new->fd_n, 1);
    ck_assert_int_eq(new->fds[0], fd);
    ck_assert_int_eq(old->fds[0], fd);

    listener_undo_open(new, old);
    ck_assert_int_eq(new->fds[0], -1);
    ck_assert_uint_eq(slot_of_a_client(old), 0);

    new = listening_open(listening, old->text, NULL, old, 2);
    listening_commit(listening, new);
    ck_assert_uint_eq(slot_of_a_client(new), 0);
    listener_close(new);
    listening_stop(listening);
}
END_TEST

/* Connects until every slot has had a client. */
static bool all_slots_serve(const struct listener *listener)
{
    bool served[SLOTS] = { false };
    unsigned missing = listener->fd_n;

    for (unsigned i = 0; i < 2000 && missing > 0; i++) {
        unsigned slot = slot_of_a_client(listener);

        missing -= !served[slot];
        served[slot] = true;
    }
    return missing == 0;
}

START_TEST(slots_join_their_group_at_commit)
{
    struct listening *listening = listening_start();
    struct listener_options options = listener_defaults;
    struct listener *old, *new;

    options.reuseport = true;
    old = listening_open(listening, "127.0.0.1", &options, NULL, 2);
    ck_assert_uint_eq(old->fd_n, 2);
    listening_commit(listening, old);
    ck_assert(all_slots_serve(old));

    new = listening_open(listening, old->text, &options, old, SLOTS);
    ck_assert_uint_eq(new->fd_n, SLOTS);
    ck_assert(new->adopted);
    for (unsigned i = 0; i < old->fd_n; i++)
        ck_assert_int_eq(new->fds[i], old->fds[i]);
    for (unsigned i = 0; i < 64; i++)
        ck_assert_uint_lt(slot_of_a_client(old), 2);

    listener_undo_open(new, old);
    ck_assert(all_slots_serve(old));

    new = listening_open(listening, old->text, &options, old, SLOTS);
    listening_commit(listening, new);
    ck_assert(all_slots_serve(new));

    /* fewer workers give up no queue */
    old = new;
    new = listening_open(listening, old->text, &options, old, 1);
    ck_assert_uint_eq(new->fd_n, SLOTS);
    listening_commit(listening, new);
    ck_assert(all_slots_serve(new));
    listener_close(new);
    listening_stop(listening);
}
END_TEST

START_TEST(a_failed_open_gives_back_what_it_took)
{
    struct listening *listening = listening_start();
    struct listener_options options = listener_defaults;
    struct listener *old, *new;
    struct rlimit limit, low;
    unsigned before;
    int last;
    char expected[256];

    options.reuseport = true;
    old = listening_open(listening, "127.0.0.1", &options, NULL, 1);
    listening_commit(listening, old);
    new = listening_create(listening, old->text, &options);

    /* room for a single descriptor, not for two */
    before = count_fds();
    last = dup(old->fds[0]);
    ck_assert_int_ne(last, -1);
    close(last);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = (struct rlimit) { .rlim_cur = (rlim_t)last + 1, .rlim_max = limit.rlim_max };
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    ck_assert_int_eq(listener_open(new, old, 3, &listening->log.log), -1);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);

    snprintf(expected, sizeof(expected),
        "t: [emerg] socket() %s failed (24: Too many open files)\n", old->text);
    ck_assert_str_eq(memory_log_take(&listening->log), expected);
    ck_assert_uint_eq(count_fds(), before);
    for (unsigned i = 0; i < new->fd_n; i++)
        ck_assert_int_eq(new->fds[i], -1);
    ck_assert_uint_eq(slot_of_a_client(old), 0);
    listener_close(old);
    listening_stop(listening);
}
END_TEST

START_TEST(find_wants_the_same_address)
{
    struct listening *listening = listening_start();
    struct listener_options options = listener_defaults;
    struct listeners all;
    struct listener *in = listening_open(listening, "127.0.0.1", NULL, NULL, 1);
    struct listener *in6 = listening_open(listening, "[::1]", NULL, NULL, 1);
    struct listener *closed = listening_create(listening, "127.0.0.1:1", NULL);

    listener_set_init(&all);
    listener_set_add(&all, closed);
    listener_set_add(&all, in);
    listener_set_add(&all, in6);
    options.backlog = 1;
    ck_assert_ptr_eq(listener_set_find(&all, listening_create(listening, in->text, &options)), in);
    ck_assert_ptr_eq(listener_set_find(&all, listening_create(listening, in6->text, NULL)), in6);
    ck_assert_ptr_null(listener_set_find(&all, listening_create(listening, "127.0.0.1:1", NULL)));
    options.reuseport = true;
    ck_assert_ptr_eq(listener_set_find(&all, listening_create(listening, in->text, &options)), in);
    listener_close(in);
    listener_close(in6);
    listening_stop(listening);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, prepared_is_not_listening, 0, countof(inet_hosts));
    tcase_add_test(tcase, sockets_are_made_ready_before_bind);
    tcase_add_test(tcase, a_port_in_use_is_one_line);
    tcase_add_test(tcase, a_lost_race_is_told_by_commit);
    tcase_add_test(tcase, a_kept_socket_is_the_same_descriptor);
    tcase_add_test(tcase, slots_join_their_group_at_commit);
    tcase_add_test(tcase, a_failed_open_gives_back_what_it_took);
    tcase_add_test(tcase, find_wants_the_same_address);
}

TEST_MAIN("listener", add_tests)

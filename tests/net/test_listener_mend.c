/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners that listen again after a shutdown. */
#include "net/listener_open.h"
#include "net/listener_options.h"
#include "net/listener_socket.h"
#include "net/listening.h"
#include "os/descriptor.h"
#include "support/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Ends of a listening socket; TCP alone has the last, a connection to somewhere else. */
enum way { ENDED_INPUT, ENDED, CONNECTED };
static const char *const addresses[] = { "127.0.0.1", "[::1]", "0.0.0.0", "unix:" };

static const struct listeners others = { .list = { NULL, NULL } };

#define WAYS 3
#define ADDRESSES ((int)(sizeof(addresses) / sizeof(addresses[0])))

static struct listener *open_listener(struct listening *listening, const char *text, unsigned slots)
{
    struct listener_options options = every_option;
    struct listener *listener;
    char path[64];

    options.reuseport = slots > 1;
    options.deferred = false;
    snprintf(path, sizeof(path), "unix:%s/socket", directory);
    listener =
        listening_open(listening, strcmp(text, "unix:") == 0 ? path : text, &options, NULL, slots);
    ck_assert(listener_is_broken(listener, listener->fds[0])); /* does not listen yet */
    listening_commit(listening, listener);
    ck_assert(!listener_is_broken(listener, listener->fds[0]));
    return listener;
}

static void close_listener(struct listening *listening, struct listener *listener)
{
    listener_close(listener);
    listener_unlink(listener, &listening->log.log);
    listening_stop(listening);
}

static void expect_line(struct listening *listening, const struct listener *listener, unsigned n)
{
    char line[ADDRESS_TEXT + 64];

    snprintf(line, sizeof(line), "t: [alert] listener %s was shut down, and listens again (%u)\n",
        listener->text, n);
    ck_assert_str_eq(memory_log_take(&listening->log), line);
}

static bool is_unix(const struct listener *listener)
{
    return listener->address.any.sa_family == AF_UNIX;
}

/* Makes the listening socket a client of a silent server, so that a close would wait. */
static void connect_away(int fd)
{
    static const struct linger slow = { .l_onoff = 1, .l_linger = 3600 };
    static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
    static char bytes[1 << 16];
    struct address sink = { .length = sizeof(sink.un) };
    int server = socket(option_of(fd, SOL_SOCKET, SO_DOMAIN), SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(listen(server, 1), 0);
    ck_assert_int_eq(getsockname(server, &sink.any, &sink.length), 0);
    ck_assert_int_eq(connect(fd, &nowhere, sizeof(nowhere)), 0);
    if (connect(fd, &sink.any, sink.length) == -1)
        ck_assert_int_eq(errno, EINPROGRESS);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &slow, sizeof(slow)), 0);
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    close(server);
}

static void break_socket(const struct listener *listener, int fd, enum way way)
{
    if (way == CONNECTED && !is_unix(listener))
        connect_away(fd);
    else
        ck_assert_int_eq(shutdown(fd, way == ENDED_INPUT ? SHUT_RD : SHUT_RDWR), 0);
    ck_assert(listener_is_broken(listener, fd));
}

/* Ends the socket in the given way; it listens again on the port chosen by the kernel. */
static void break_and_mend(
    struct listening *listening, struct listener *listener, int i, enum way way)
{
    struct address before = listener->address;
    int fd = listener->fds[i];

    break_socket(listener, fd, way);
    ck_assert_int_eq(listener_mend(listener, fd, &others, true, &listening->log.log),
        is_unix(listener) ? LISTENER_REPLACED : LISTENER_MENDED);
    ck_assert(!listener_is_broken(listener, fd));
    ck_assert_int_eq(listener->fds[i], fd);
    ck_assert(address_equal(&before, &listener->address));
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
}

START_TEST(it_listens_again)
{
    struct listening *listening = listening_start();
    struct listener *listener = open_listener(listening, addresses[_i % ADDRESSES], 1);
    int value;
    socklen_t length = sizeof(value);

    for (unsigned n = 1; n <= 2; n++) {
        break_and_mend(listening, listener, 0, (enum way)(_i / ADDRESSES));
        expect_line(listening, listener, n);
        ck_assert_uint_eq(slot_of_a_client(listener), 0);
        ck_assert_int_eq(getsockopt(listener->fds[0], SOL_SOCKET, SO_RCVBUF, &value, &length), 0);
        ck_assert_int_eq(value, 2 * every_option.rcvbuf);
    }
    close_listener(listening, listener);
}
END_TEST

START_TEST(so_does_one_of_several)
{
    struct listening *listening = listening_start();
    struct listener *listener = open_listener(listening, "127.0.0.1", 3);

    break_and_mend(listening, listener, 1, ENDED);
    expect_line(listening, listener, 1);
    ck_assert_int_eq(shutdown(listener->fds[0], SHUT_RDWR), 0);
    ck_assert_int_eq(shutdown(listener->fds[2], SHUT_RDWR), 0);
    for (int i = 0; i < 5; i++) { /* clients reach the mended socket */
        struct pollfd polled = { .fd = listener->fds[1], .events = POLLIN };
        int client = try_connect(&listener->address), fd;

        ck_assert_int_ne(client, -1);
        ck_assert_int_eq(poll(&polled, 1, TEST_PATIENCE_MS), 1);
        fd = accept4(listener->fds[1], NULL, NULL, SOCK_CLOEXEC);
        ck_assert_int_ne(fd, -1);
        close(client);
        close(fd);
    }
    close_listener(listening, listener);
}
END_TEST

START_TEST(of_many_times_few_are_logged)
{
    struct listening *listening = listening_start();
    struct listener *listener = open_listener(listening, addresses[_i], 1);

    for (unsigned n = 1; n <= 40; n++) {
        break_and_mend(listening, listener, 0, ENDED);
        if ((n & (n - 1)) == 0)
            expect_line(listening, listener, n);
        else
            ck_assert_str_eq(memory_log_take(&listening->log), "");
    }
    close_listener(listening, listener);
}
END_TEST

/* Somebody else listens there by now. */
START_TEST(one_that_cannot_is_tried_less_often)
{
    struct listening *listening = listening_start();
    struct listener *listener = open_listener(listening, addresses[_i], 1), *other;
    unsigned lines = 0;
    int fd = listener->fds[0];

    ck_assert_int_eq(shutdown(fd, SHUT_RDWR), 0);
    ck_assert_int_eq(fcntl(fd, F_SETFD, FD_CLOEXEC), 0);
    other = listener_create(listening->arena, &listener->address, &listener_defaults);
    if (_i == 3) {
        ck_assert_int_eq(listener_open(other, NULL, 1, &listening->log.log), 0);
        listening_commit(listening, other);
    } else {
        other->fds = listener->fds;
        ck_assert_int_eq(close(fd), 0); /* no socket at all under its number */
    }
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(listener_mend(listener, fd, &others, _i == 3, &listening->log.log), -1);
        lines += memory_log_take(&listening->log)[0] != '\0';
    }
    ck_assert_uint_ge(lines, 10);
    ck_assert_uint_le(lines, 30);
    if (_i == 3) {
        listener_close(other);
        for (int i = 0; listener_mend(listener, fd, &others, true, &listening->log.log) == -1; i++)
            ck_assert_int_lt(i, 64);
        ck_assert_uint_eq(slot_of_a_client(listener), 0);
        memory_log_take(&listening->log);
    } else {
        listener->fds[0] = -1;
    }
    close_listener(listening, listener);
}
END_TEST

/* A port of the kernel's choice is lost with a disconnect, and another is taken. */
static void take_other_port(int fd)
{
    static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
    struct address other = { .length = sizeof(other.in) };

    other.in.sin_family = AF_INET;
    other.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, &nowhere, sizeof(nowhere)), 0);
    ck_assert_int_eq(bind(fd, &other.any, other.length), 0);
}

/* A socket with a changed address is replaced, unless forbidden: only the service manager can
 * replace its own. */
START_TEST(a_socket_that_was_bound_elsewhere)
{
    struct listening *listening = listening_start();
    struct listener *listener = open_listener(listening, "127.0.0.1", 1);
    bool may_replace = _i == 0;
    int fd = listener->fds[0];

    take_other_port(fd);
    ck_assert(listener_is_broken(listener, fd));
    ck_assert_int_eq(listener_mend(listener, fd, &others, may_replace, &listening->log.log),
        may_replace ? LISTENER_REPLACED : -1);
    if (may_replace) {
        expect_line(listening, listener, 1);
        ck_assert_uint_eq(slot_of_a_client(listener), 0);
    } else {
        ck_assert_ptr_nonnull(
            strstr(memory_log_take(&listening->log), "which was shut down, failed"));
    }
    close_listener(listening, listener);
}
END_TEST

/* The path stays the service manager's socket, which cannot listen again. */
START_TEST(a_unix_socket_of_others_is_only_reported)
{
    struct listening *listening = listening_start();
    struct listener *listener = open_listener(listening, "unix:", 1);
    int fd = listener->fds[0];
    uint64_t inode = descriptor_inode(fd);

    break_socket(listener, fd, ENDED);
    ck_assert_int_eq(listener_mend(listener, fd, &others, false, &listening->log.log), -1);
    ck_assert_ptr_nonnull(strstr(
        memory_log_take(&listening->log), "was shut down, and only its owner can replace it: "));
    ck_assert_uint_eq(descriptor_inode(fd), inode);
    close_listener(listening, listener);
}
END_TEST

/* A socket that the next configuration takes over listens again at the commit. */
START_TEST(a_kept_socket_listens_again)
{
    struct listening *listening = listening_start();
    struct listener *old = open_listener(listening, addresses[_i % 3], 1), *new;

    break_socket(old, old->fds[0], (enum way)(_i / 3));
    new = listening_open(listening, old->text, NULL, old, 1);
    listening_commit(listening, new);
    ck_assert_uint_eq(slot_of_a_client(new), 0);
    close_listener(listening, new);
}
END_TEST

/* A close is no trap: the sockets are closed without waiting for a peer. */
START_TEST(no_close_waits)
{
    struct listening *listening = listening_start();
    struct listener *listener = open_listener(listening, "127.0.0.1", 1);
    int copy = fcntl(listener->fds[0], F_DUPFD_CLOEXEC, 0);
    struct linger linger;
    socklen_t length = sizeof(linger);

    connect_away(copy);
    listener_close(listener);
    ck_assert_int_eq(getsockopt(copy, SOL_SOCKET, SO_LINGER, &linger, &length), 0);
    ck_assert_int_eq(linger.l_onoff, 0);
    close(copy);
    listening_stop(listening);
}
END_TEST

static void add_tests(TCase *tcase)
{
    directory_add(tcase);
    tcase_add_loop_test(tcase, it_listens_again, 0, WAYS * ADDRESSES);
    tcase_add_test(tcase, so_does_one_of_several);
    tcase_add_loop_test(tcase, of_many_times_few_are_logged, 0, ADDRESSES);
    tcase_add_loop_test(tcase, a_socket_that_was_bound_elsewhere, 0, 2);
    tcase_add_test(tcase, a_unix_socket_of_others_is_only_reported);
    tcase_add_loop_test(tcase, a_kept_socket_listens_again, 0, WAYS * 3);
    tcase_add_test(tcase, no_close_waits);
    tcase_add_loop_test(tcase, one_that_cannot_is_tried_less_often, 0, ADDRESSES);
}

TEST_MAIN("listener_mend", add_tests)

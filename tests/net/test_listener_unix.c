/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners on unix sockets: permissions, leftovers of dead processes, and ownership of a path. */
#include "net/address_parse.h"
#include "net/listener_open.h"
#include "net/listener_socket.h"
#include "net/listening.h"
#include "support/directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *unix_address(const char *name, char address[64])
{
    snprintf(address, 64, "unix:%s/%s", directory, name);
    return address;
}

START_TEST(unix_sockets_are_for_any_user)
{
    struct listening *listening = listening_start();
    struct listener_options options = every_option;
    struct listener *listener;
    struct stat st;
    char address[64];
    mode_t mask = umask(077);

    options.reuseport = true;
    listener = listening_open(listening, unix_address("any", address), &options, NULL, 3);
    umask(mask);
    ck_assert_uint_eq(listener->fd_n, 1);
    ck_assert(!listener->options.reuseport);
    ck_assert_str_eq(listener->text, address);
    ck_assert_int_eq(lstat(address + 5, &st), 0);
    ck_assert(S_ISSOCK(st.st_mode));
    ck_assert_uint_eq(st.st_mode & 07777, 0666);
    ck_assert_int_eq(try_connect(&listener->address), -1);
    listening_commit(listening, listener);
    ck_assert_uint_eq(slot_of_a_client(listener), 0);
    listener_close(listener);
    ck_assert_int_eq(lstat(address + 5, &st), 0);
    listener_unlink(listener, &listening->log.log);
    ck_assert_int_eq(lstat(address + 5, &st), -1);
    listener_unlink(listener, &listening->log.log);
    listening_stop(listening);
}
END_TEST

START_TEST(only_the_unix_socket_that_was_made_is_taken_back)
{
    struct listening *listening = listening_start();
    struct listener *old, *new;
    struct stat before, after;
    char address[64];

    old = listening_open(listening, unix_address("back", address), NULL, NULL, 1);
    listener_undo_open(old, NULL);
    ck_assert_int_eq(lstat(address + 5, &before), -1);

    old = listening_open(listening, address, NULL, NULL, 1);
    listening_commit(listening, old);
    ck_assert_int_eq(chmod(address + 5, 0600), 0);
    ck_assert_int_eq(lstat(address + 5, &before), 0);
    new = listening_open(listening, address, NULL, old, 1);
    ck_assert_int_eq(new->fds[0], old->fds[0]);
    listener_undo_open(new, old);
    new = listening_open(listening, address, NULL, old, 1);
    listening_commit(listening, new);
    ck_assert_int_eq(lstat(address + 5, &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    ck_assert_uint_eq(before.st_mode, after.st_mode);
    ck_assert_uint_eq(slot_of_a_client(new), 0);
    listener_close(new);
    listener_unlink(new, &listening->log.log);
    listening_stop(listening);
}
END_TEST

/* Leaves a bound socket of some type on the path. */
static int occupy_path(const char *address_text, int type)
{
    struct address address;
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    ck_assert_int_ne(fd, -1);
    ck_assert_ptr_null(address_parse(address_text, 0, &address));
    ck_assert_int_eq(bind(fd, &address.any, address.length), 0);
    return fd;
}

START_TEST(a_stale_unix_socket_is_replaced)
{
    struct listening *listening = listening_start();
    struct listener *listener;
    char address[64];

    close(occupy_path(unix_address("stale", address), _i == 0 ? SOCK_STREAM : SOCK_DGRAM));
    listener = listening_open(listening, address, NULL, NULL, 1);
    listening_commit(listening, listener);
    ck_assert_uint_eq(slot_of_a_client(listener), 0);
    listener_close(listener);
    listener_unlink(listener, &listening->log.log);
    listening_stop(listening);
}
END_TEST

START_TEST(a_live_unix_socket_is_in_use)
{
    struct listening *listening = listening_start();
    char address[64], expected[256];
    struct listener *listener = listening_create(listening, unix_address("live", address), NULL);
    int fd = occupy_path(address, _i == 0 ? SOCK_STREAM : SOCK_DGRAM), client;

    if (_i == 0)
        ck_assert_int_eq(listen(fd, 5), 0);
    ck_assert_int_eq(listener_open(listener, NULL, 1, &listening->log.log), -1);
    snprintf(expected, sizeof(expected), "t: [emerg] bind() to %s failed: the socket is in use\n",
        address);
    ck_assert_str_eq(memory_log_take(&listening->log), expected);
    if (_i == 0) {
        client = try_connect(&listener->address);
        ck_assert_int_ne(client, -1);
        close(client);
    }
    close(fd);
    ck_assert_int_eq(unlink(address + 5), 0);
    listening_stop(listening);
}
END_TEST

START_TEST(a_full_unix_socket_is_in_use)
{
    struct listening *listening = listening_start();
    char address[64], expected[256];
    struct listener *listener = listening_create(listening, unix_address("full", address), NULL);
    int fd = occupy_path(address, SOCK_STREAM), client;

    ck_assert_int_eq(listen(fd, 0), 0);
    client = try_connect(&listener->address);
    ck_assert_int_ne(client, -1);
    ck_assert_int_eq(listener_open(listener, NULL, 1, &listening->log.log), -1);
    snprintf(expected, sizeof(expected), "t: [emerg] bind() to %s failed: the socket is in use\n",
        address);
    ck_assert_str_eq(memory_log_take(&listening->log), expected);
    close(client);
    close(fd);
    ck_assert_int_eq(unlink(address + 5), 0);
    listening_stop(listening);
}
END_TEST

START_TEST(what_is_no_socket_is_left_alone)
{
    struct listening *listening = listening_start();
    char address[64], expected[256];
    struct listener *listener = listening_create(listening, unix_address("plain", address), NULL);
    struct stat st;
    int fd = open(address + 5, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    ck_assert_int_ne(fd, -1);
    close(fd);
    ck_assert_int_eq(listener_open(listener, NULL, 1, &listening->log.log), -1);
    snprintf(expected, sizeof(expected),
        "t: [emerg] bind() to %s failed: the path exists and is not a socket\n", address);
    ck_assert_str_eq(memory_log_take(&listening->log), expected);
    listener_undo_open(listener, NULL);
    listener_unlink(listener, &listening->log.log);
    ck_assert_int_eq(lstat(address + 5, &st), 0);
    ck_assert(S_ISREG(st.st_mode));
    ck_assert_int_eq(unlink(address + 5), 0);

    listener = listening_create(listening, unix_address("none/plain", address), NULL);
    ck_assert_int_eq(listener_open(listener, NULL, 1, &listening->log.log), -1);
    snprintf(expected, sizeof(expected),
        "t: [emerg] bind() to %s failed (2: No such file or directory)\n", address);
    ck_assert_str_eq(memory_log_take(&listening->log), expected);
    listening_stop(listening);
}
END_TEST

static void add_tests(TCase *tcase)
{
    directory_add(tcase);
    tcase_add_test(tcase, unix_sockets_are_for_any_user);
    tcase_add_test(tcase, only_the_unix_socket_that_was_made_is_taken_back);
    tcase_add_loop_test(tcase, a_stale_unix_socket_is_replaced, 0, 2);
    tcase_add_loop_test(tcase, a_live_unix_socket_is_in_use, 0, 2);
    tcase_add_test(tcase, a_full_unix_socket_is_in_use);
    tcase_add_test(tcase, what_is_no_socket_is_left_alone);
}

TEST_MAIN("listener_unix", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* A passed descriptor, bytes without a descriptor, and sockets with a waiting close(). */
#include "channel/fd_passing.h"

#include "os/descriptor.h"
#include "os/sockets.h"
#include "support/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };
static unsigned received_n; /* calls of recvmsg() */

/* Counts the library's calls, which come here. */
ssize_t recvmsg(int socket, struct msghdr *header, int flags)
{
    ssize_t (*call)(int, struct msghdr *, int);

    received_n++;
    *(void **)&call = dlsym(RTLD_NEXT, "recvmsg");
    return call(socket, header, flags);
}

START_TEST(a_descriptor_goes_along)
{
    int ends[2], tube[2], passed = -1;
    char c = 0;

    ck_assert_int_eq(socketpair(AF_UNIX, types[_i], 0, ends), 0);
    ck_assert_int_eq(pipe(tube), 0);
    ck_assert_int_eq(fd_send(ends[0], "a", 1, tube[1]), 1);
    ck_assert_int_eq(fd_send(ends[0], "b", 1, -1), 1);
    ck_assert_int_eq(fd_receive(ends[1], &c, 1, &passed, NULL), 1);
    ck_assert_int_eq(c, 'a');
    ck_assert_int_eq(fcntl(passed, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(write(passed, "x", 1), 1);
    ck_assert_int_eq(read(tube[0], &c, 1), 1);
    close(passed);
    ck_assert_int_eq(fd_receive(ends[1], &c, 1, &passed, NULL), 1);
    ck_assert_int_eq(passed, -1);
    close(ends[0]);
    ck_assert_int_eq(fd_receive(ends[1], &c, 1, &passed, NULL), 0);
    ck_assert_int_eq(fd_send(ends[1], "c", 1, tube[1]), -1);
    ck_assert_int_eq(errno, EPIPE);
    close(ends[1]);
    close(tube[0]);
    close(tube[1]);
}
END_TEST

/* Sends a byte with so many descriptors; -1 with errno. */
static int send_many(int socket, const int *fds, size_t n)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(8 * sizeof(int))];
    } control = { .room = "" };
    struct iovec piece = { "a", 1 };
    struct msghdr header = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control.room,
        .msg_controllen = CMSG_SPACE(n * sizeof(int)),
    };

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(n * sizeof(int));
    memcpy(CMSG_DATA(&control.header), fds, n * sizeof(int));
    return (int)sendmsg(socket, &header, 0);
}

/* The first descriptor is returned, and the second is closed. */
START_TEST(of_two_descriptors_one_arrives)
{
    int ends[2], pipes[2], passed = -1;
    char c;

    ck_assert_int_eq(socketpair(AF_UNIX, types[_i], 0, ends), 0);
    ck_assert_int_eq(pipe(pipes), 0);
    ck_assert_int_eq(send_many(ends[0], pipes, 2), 1);
    close(pipes[1]);
    ck_assert_int_eq(fd_receive(ends[1], &c, 1, &passed, NULL), 1);
    ck_assert_int_ne(passed, -1);
    close(passed);
    ck_assert_int_eq(read(pipes[0], &c, 1), 0); /* no writer is left */
    close(pipes[0]);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* Connects two sockets; a close of the first waits for an hour, because the second does not
 * read. */
static void open_slow(int pair[2])
{
    static const struct linger slow = { .l_onoff = 1, .l_linger = 3600 };
    static const char much[1 << 16];
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(pair[0], (struct sockaddr *)&address, length), 0);
    pair[1] = accept(listener, NULL, NULL);
    close(listener);
    while (send(pair[0], much, sizeof(much), MSG_DONTWAIT) > 0)
        continue;
    ck_assert_int_eq(setsockopt(pair[0], SOL_SOCKET, SO_LINGER, &slow, sizeof(slow)), 0);
}

/* Sends the socket several times in a message, and closes it: the receiver has the last copy. */
static void send_slow(int socket, int peers[3])
{
    int slow[3];

    for (int i = 0; i < 3; i++) {
        int pair[2];

        open_slow(pair);
        slow[i] = pair[0];
        peers[i] = pair[1];
    }
    ck_assert_int_eq(send_many(socket, slow, 3), 1);
    for (int i = 0; i < 3; i++)
        close(slow[i]);
}

static void close_all(const int *fds, int n)
{
    for (int i = 0; i < n; i++)
        close(fds[i]);
}

START_TEST(what_is_discarded_is_not_waited_for)
{
    int ends[2], peers[3], passed;
    char c;

    ck_assert_int_eq(socketpair(AF_UNIX, types[_i], 0, ends), 0);
    send_slow(ends[0], peers);
    ck_assert_int_eq(fd_receive(ends[1], &c, 1, &passed, NULL), 1);
    ck_assert_int_ne(passed, -1);
    errno = 77;
    descriptor_discard(passed);
    ck_assert_int_eq(errno, 77);
    close_all(ends, 2);
    close_all(peers, 3);
}
END_TEST

START_TEST(what_is_not_received_is_not_waited_for)
{
    int ends[2], peers[3];

    ck_assert_int_eq(socketpair(AF_UNIX, types[_i], 0, ends), 0);
    send_slow(ends[0], peers);
    fd_close_socket(ends[1]);
    close(ends[0]);
    close_all(peers, 3);
}
END_TEST

/* A liar sends empty packets, which look like the end, before the descriptors. */
START_TEST(empty_packets_hide_nothing)
{
    int ends[2], peers[3];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(send(ends[0], "", 0, 0), 0);
    send_slow(ends[0], peers);
    received_n = 0;
    fd_close_socket(ends[1]);
    ck_assert_uint_gt(received_n, 100);
    close(ends[0]);
    close_all(peers, 3);
}
END_TEST

/* An end without packets is found at once, with the opposite end open or closed. */
START_TEST(the_end_is_found)
{
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    if (_i == 1)
        close(ends[0]);
    received_n = 0;
    fd_close_socket(ends[1]);
    ck_assert_uint_le(received_n, 4);
    if (_i == 0)
        close(ends[0]);
}
END_TEST

/* A kernel before Linux 6.16 takes the descriptor. */
START_TEST(descriptors_can_be_refused)
{
    int ends[2], passed = -1;
    char c;

    ck_assert_int_eq(socketpair(AF_UNIX, types[_i], 0, ends), 0);
    os_rights_refuse(ends[1]);
    if (fd_send(ends[0], "a", 1, ends[0]) == -1)
        ck_assert_int_eq(errno, EPERM);
    else
        ck_assert_int_eq(fd_receive(ends[1], &c, 1, &passed, NULL), 1);
    if (passed != -1)
        descriptor_discard(passed);
    ck_assert_int_eq(fd_send(ends[0], "b", 1, -1), 1);
    ck_assert_int_eq(fd_receive(ends[1], &c, 1, &passed, NULL), 1);
    ck_assert_int_eq(c, 'b');
    ck_assert_int_eq(fd_send(ends[1], "c", 1, ends[1]), 1); /* the other way */
    close(ends[1]);
    fd_close_socket(ends[0]);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_descriptor_goes_along, 0, 2);
    tcase_add_loop_test(tcase, of_two_descriptors_one_arrives, 0, 2);
    tcase_add_loop_test(tcase, what_is_discarded_is_not_waited_for, 0, 2);
    tcase_add_loop_test(tcase, what_is_not_received_is_not_waited_for, 0, 2);
    tcase_add_test(tcase, empty_packets_hide_nothing);
    tcase_add_loop_test(tcase, the_end_is_found, 0, 2);
    tcase_add_loop_test(tcase, descriptors_can_be_refused, 0, 2);
}

TEST_MAIN("fd_passing", add_tests)

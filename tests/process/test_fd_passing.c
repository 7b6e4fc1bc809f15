/* SPDX-License-Identifier: BSD-2-Clause */
/* A descriptor that is passed, and bytes without one. */
#include "process/fd_passing.h"

#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };

START_TEST(a_descriptor_goes_along)
{
    int ends[2], tube[2], passed = -1;
    char c = 0;

    ck_assert_int_eq(socketpair(AF_UNIX, types[_i], 0, ends), 0);
    ck_assert_int_eq(pipe(tube), 0);
    ck_assert_int_eq(fd_send(ends[0], "a", 1, tube[1]), 1);
    ck_assert_int_eq(fd_send(ends[0], "b", 1, -1), 1);
    ck_assert_int_eq(fd_receive(ends[1], &c, 1, &passed), 1);
    ck_assert_int_eq(c, 'a');
    ck_assert_int_eq(fcntl(passed, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(write(passed, "x", 1), 1);
    ck_assert_int_eq(read(tube[0], &c, 1), 1);
    close(passed);
    ck_assert_int_eq(fd_receive(ends[1], &c, 1, &passed), 1);
    ck_assert_int_eq(passed, -1);
    close(ends[0]);
    ck_assert_int_eq(fd_receive(ends[1], &c, 1, &passed), 0);
    ck_assert_int_eq(fd_send(ends[1], "c", 1, tube[1]), -1);
    ck_assert_int_eq(errno, EPIPE);
    close(ends[1]);
    close(tube[0]);
    close(tube[1]);
}
END_TEST

/* The first is given out, and the kernel closes the other one. */
START_TEST(of_two_descriptors_one_arrives)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control = { .room = "" };
    struct iovec piece = { "a", 1 };
    struct msghdr header = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control.room,
        .msg_controllen = sizeof(control.room),
    };
    int ends[2], pipes[2], passed = -1;
    char c;

    ck_assert_int_eq(socketpair(AF_UNIX, types[_i], 0, ends), 0);
    ck_assert_int_eq(pipe(pipes), 0);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(pipes));
    memcpy(CMSG_DATA(&control.header), (int[]) { pipes[0], pipes[1] }, sizeof(pipes));
    ck_assert_int_eq(sendmsg(ends[0], &header, 0), 1);
    close(pipes[1]);
    ck_assert_int_eq(fd_receive(ends[1], &c, 1, &passed), 1);
    ck_assert_int_ne(passed, -1);
    close(passed);
    ck_assert_int_eq(read(pipes[0], &c, 1), 0); /* no writer is left */
    close(pipes[0]);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_descriptor_goes_along, 0, 2);
    tcase_add_loop_test(tcase, of_two_descriptors_one_arrives, 0, 2);
}

TEST_MAIN("fd_passing", add_tests)

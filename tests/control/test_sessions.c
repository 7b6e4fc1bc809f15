/* SPDX-License-Identifier: BSD-2-Clause */
/* The command "sessions": a client's pipe, for rows of workers. */
#include "channel/fd_passing.h"
#include "control/host.h"

#define ASK "{\"command\":\"sessions\"}\n"

/* Receives a reply with the reading end of a pipe. */
static int received_pipe(int fd, char *text, size_t size)
{
    int pipe = -1;
    ssize_t n = fd_receive(fd, text, size - 1, &pipe, NULL);

    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    return pipe;
}

START_TEST(workers_write_into_the_pipe_of_the_client)
{
    struct host host;
    char reply[1024], rows[16] = "";
    int fd, pipe;

    set_up(&host);
    host.generation->workers[0].pid = 42;
    host.generation->workers[1].pid = 43; /* reads no messages */
    fd = connect_client(&host);
    for (int i = 0; i < 2; i++) {
        send_text(&host, fd, ASK);
        pipe = received_pipe(fd, reply, sizeof(reply));
        ck_assert_str_eq(reply, "{\"ok\":true,\"workers\":[{\"pid\":42,\"generation\":7,\"asked\":"
                                "true},{\"pid\":43,\"generation\":7,\"asked\":false}]}\n");
        ck_assert_int_ne(pipe, -1);
        ck_assert_int_eq(read(pipe, rows, sizeof(rows)), 4);
        ck_assert_mem_eq(rows, "row\n", 4);
        ck_assert_int_eq(read(pipe, rows, sizeof(rows)), 0); /* the master has kept no end */
        close(pipe);
    }
    close(fd);
    tear_down(&host);
}
END_TEST

/* The kernel closes an end in unread bytes: writers see a gone reader. */
START_TEST(a_client_that_goes_takes_its_pipe_along)
{
    struct host host;
    int fd;

    set_up(&host);
    fd = connect_client(&host);
    send_text(&host, fd, ASK);
    close(fd);
    control_serve(&host.control);
    ck_assert_uint_eq(host.control.client_n, 0);
    tear_down(&host);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, workers_write_into_the_pipe_of_the_client);
    tcase_add_test(tcase, a_client_that_goes_takes_its_pipe_along);
}

TEST_MAIN("control sessions", add_tests)

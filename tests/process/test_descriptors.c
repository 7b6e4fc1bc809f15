/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of descriptors, and closing of all descriptors in none. */
#include "process/descriptors.h"
#include "support/test.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_null(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    ck_assert_int_ne(fd, -1);
    return fd;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) != -1;
}

static bool has(const struct descriptors *set, int fd)
{
    for (unsigned i = 0; i < set->n; i++)
        if (set->fds[i] == fd)
            return true;
    return false;
}

/* 0 when exactly the given descriptors stay open in a child, beside the standard ones. */
static int close_in_child(struct descriptors *set, const int *stay, unsigned stay_n, int most)
{
    int status;
    pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        descriptors_close_others(set);
        for (int fd = 0; fd <= most; fd++) {
            bool wanted = fd <= STDERR_FILENO;

            for (unsigned i = 0; i < stay_n; i++)
                wanted = wanted || stay[i] == fd;
            if (is_open(fd) != wanted)
                _exit(1);
        }
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

START_TEST(all_but_the_set_is_closed)
{
    struct descriptors set = { .fds = NULL };
    int fds[40], stay[] = { 0, 0, 0, 0 };

    for (int i = 0; i < 40; i++)
        fds[i] = open_null();
    stay[0] = fds[39];
    stay[1] = fds[0];
    stay[2] = fds[17];
    stay[3] = fds[18];
    for (int i = 0; i < 4; i++)
        descriptors_add(&set, stay[i]);
    descriptors_add(&set, -1);
    descriptors_add(&set, fds[17]); /* twice */
    descriptors_add(&set, STDERR_FILENO);
    ck_assert_uint_eq(set.n, 6);
    ck_assert(!set.failed);
    ck_assert_int_eq(close_in_child(&set, stay, 4, fds[39] + 100), 0);
    descriptors_done(&set);
    ck_assert_uint_eq(set.n, 0);
    ck_assert_int_eq(close_in_child(&set, NULL, 0, fds[39] + 100), 0);
    for (int i = 0; i < 40; i++)
        close(fds[i]);
}
END_TEST

START_TEST(what_was_opened_since_is_found)
{
    struct descriptors before = { .fds = NULL }, since = { .fds = NULL }, both = { .fds = NULL };
    int first = open_null(), second;

    descriptors_find_open(&before, NULL);
    second = open_null();
    descriptors_find_open(&since, &before);
    ck_assert(has(&before, first));
    ck_assert(!has(&before, second));
    ck_assert_uint_eq(since.n, 1);
    ck_assert(has(&since, second));
    descriptors_add_all(&both, &before);
    descriptors_add_all(&both, &since);
    ck_assert_uint_eq(both.n, before.n + 1);
    descriptors_done(&before);
    descriptors_done(&since);
    descriptors_done(&both);
    close(first);
    close(second);
}
END_TEST

START_TEST(what_was_closed_is_forgotten)
{
    struct descriptors set = { .fds = NULL };
    int first = open_null(), second = open_null(), third = open_null();

    descriptors_add(&set, first);
    descriptors_add(&set, second);
    descriptors_add(&set, third);
    close(first);
    close(third);
    descriptors_drop_closed(&set);
    ck_assert_uint_eq(set.n, 1);
    ck_assert(has(&set, second));
    close(second);
    descriptors_drop_closed(&set);
    ck_assert_uint_eq(set.n, 0);
    descriptors_done(&set);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, all_but_the_set_is_closed);
    tcase_add_test(tcase, what_was_opened_since_is_found);
    tcase_add_test(tcase, what_was_closed_is_forgotten);
}

TEST_MAIN("descriptors", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* States of a child, as in the kernel, and what a process uses. */
#include "os/proc.h"

#include "support/test.h"
#include "support/wait.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t fork_child(void)
{
    pid_t child = fork();

    ck_assert_int_ne(child, -1);
    if (child == 0)
        for (;;)
            pause();
    return child;
}

START_TEST(test_stopped_child)
{
    pid_t child = fork_child();

    ck_assert(!os_proc_is_stopped(child));
    ck_assert_int_eq(kill(child, SIGSTOP), 0);
    WAIT_FOR(os_proc_is_stopped(child));
    ck_assert(os_proc_runs(child));
    ck_assert_int_eq(kill(child, SIGCONT), 0);
    WAIT_FOR(!os_proc_is_stopped(child));
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert(!os_proc_is_stopped(child));
    ck_assert(!os_proc_runs(child));
}
END_TEST

/* An exited child, not reaped yet, is not stopped. */
START_TEST(test_exited_child)
{
    pid_t child = fork_child();
    siginfo_t info;

    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    ck_assert(!os_proc_is_stopped(child));
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}
END_TEST

/* Numbers that the system tells are right, and all are known of this process or none. */
START_TEST(test_usage)
{
    struct proc_usage before, usage;
    struct rlimit limit;
    int fds[2];

    os_proc_usage(getpid(), &before);
    ck_assert_int_eq(pipe(fds), 0);
    os_proc_usage(getpid(), &usage);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (usage.descriptors_max != -1)
        ck_assert_uint_eq((uint64_t)usage.descriptors_max, limit.rlim_cur);
    if (usage.descriptors != -1)
        ck_assert_int_eq(usage.descriptors, before.descriptors + 2);
    ck_assert_int_eq(usage.memory != -1, usage.descriptors_max != -1);
    ck_assert_int_eq(usage.cpu_ms != -1, usage.descriptors_max != -1);
    if (usage.memory != -1)
        ck_assert(usage.memory > 65536 && usage.memory < INT64_C(1) << 40);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

static int64_t used_ms(void)
{
    struct proc_usage usage;

    os_proc_usage(getpid(), &usage);
    return usage.cpu_ms;
}

START_TEST(test_usage_of_processors)
{
    int64_t before = used_ms();

    while (before != -1 && used_ms() < before + 30)
        ;
    ck_assert_int_le(before, (int64_t)clock() * 1000 / CLOCKS_PER_SEC + 20);
}
END_TEST

START_TEST(test_usage_of_an_ended_child)
{
    pid_t child = fork_child();
    struct proc_usage usage;

    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    os_proc_usage(child, &usage);
    ck_assert_int_eq(usage.cpu_ms, -1);
    ck_assert_int_eq(usage.memory, -1);
    ck_assert_int_eq(usage.descriptors, -1);
    ck_assert_int_eq(usage.descriptors_max, -1);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_stopped_child);
    tcase_add_test(tcase, test_exited_child);
    tcase_add_test(tcase, test_usage);
    tcase_add_test(tcase, test_usage_of_processors);
    tcase_add_test(tcase, test_usage_of_an_ended_child);
}

TEST_MAIN("proc", add_tests)

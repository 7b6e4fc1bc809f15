/* SPDX-License-Identifier: BSD-2-Clause */
/* States of a child, as in the kernel. */
#include "os/proc.h"

#include "support/test.h"
#include "support/wait.h"

#include <signal.h>
#include <sys/wait.h>
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

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_stopped_child);
    tcase_add_test(tcase, test_exited_child);
}

TEST_MAIN("proc", add_tests)

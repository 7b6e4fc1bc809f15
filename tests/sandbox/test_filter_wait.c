/* SPDX-License-Identifier: BSD-2-Clause */
/* How long the master waits for the process that makes the filter, when that hangs. Time is the
 * test's: a wait in which nothing happens takes as long as was asked for, and no time passes. */
#include "sandbox/confine.h"
#include "sandbox/sandbox.h"
#include "support/test.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t passed_ms;
static unsigned interruptions; /* waits that a signal ends */

int clock_gettime(clockid_t id, struct timespec *now)
{
    (void)id;
    *now = (struct timespec) { .tv_sec = 100 + passed_ms / 1000,
        .tv_nsec = passed_ms % 1000 * 1000000 };
    return 0;
}

int poll(struct pollfd *states, nfds_t n, int timeout)
{
    (void)states;
    (void)n;
    if (interruptions > 0) {
        interruptions--;
        passed_ms += timeout / 2;
        errno = EINTR;
        return -1;
    }
    passed_ms += timeout;
    return 0;
}

const char *sandbox_seccomp_lacks(int *error)
{
    *error = 0;
    return NULL;
}

int sandbox_seccomp_build(const struct cycle *cycle, int fd)
{
    (void)cycle;
    (void)fd;
    for (;;)
        pause();
}

START_TEST(a_filter_that_hangs_is_not_waited_for)
{
    struct cycle cycle = { .core.sandbox = SANDBOX_ON };

    cycle.arena = arena_create();
    passed_ms = 0;
    interruptions = _i == 0 ? 0 : 5;
    ck_assert_int_eq(sandbox_filter_prepare(&cycle), -1);
    ck_assert_int_eq(errno, ETIMEDOUT);
    ck_assert_int_le(passed_ms, SANDBOX_FILTER_MS);
    ck_assert_ptr_null(cycle.filter);
    arena_destroy(&cycle.arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_filter_that_hangs_is_not_waited_for, 0, 2);
}

TEST_MAIN("filter_wait", add_tests)

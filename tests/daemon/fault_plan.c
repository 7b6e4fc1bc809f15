/* SPDX-License-Identifier: BSD-2-Clause */
/* The plan of faults as a file in the daemon's directory, which the preloaded library maps too. */
#include "daemon/fault_plan.h"

#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *plan_path; /* for the child that becomes the daemon */

void fault_plan_preload(void)
{
    const char *options = getenv("ASAN_OPTIONS");
    char more[400];

    /* the sanitizer's library need not be the first: ours makes no call before main() of interest
     * to it */
    snprintf(more, sizeof(more), "%s:verify_asan_link_order=0", options != NULL ? options : "");
    setenv("ASAN_OPTIONS", more, 1);
    setenv("LD_PRELOAD", PRELOAD_PATH, 1);
    setenv("FB_FAULTS", plan_path, 1);
}

void fault_plan_signal(struct fault_plan *plan, const char *call, int number)
{
    memset(plan, 0, sizeof(*plan));
    snprintf(plan->call, sizeof(plan->call), "%s", call);
    plan->nth = 1;
    plan->kind = FAULT_IS_SIGNALED;
    plan->error = number;
    atomic_store(&plan->armed, 1);
}

struct fault_plan *fault_plan_share(struct daemon *daemon)
{
    static char path[128];
    struct fault_plan *plan;
    int fd;

    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "faults"));
    plan_path = path;
    daemon_owns(daemon, "faults");
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(fchmod(fd, 0666), 0);
    ck_assert_int_eq(ftruncate(fd, sizeof(*plan)), 0);
    plan = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(plan, MAP_FAILED);
    close(fd);
    return plan;
}

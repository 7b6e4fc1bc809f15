/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the processors of the affinity mask and of the control group, runnable threads, and how
 * often a thread has lost its processor. No function fails: where the kernel gives no answer, the
 * result is one processor, and no number of threads. */
#include "base/cpu.h"
#include "base/cpu_mask.h"
#include "os/cgroup.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PROCESSORS_MAX (1 << 20) /* more than any kernel's mask has */

/* Returns the processors of the affinity mask, or those of the machine if the mask cannot be
 * read. */
static unsigned count_affinity(void)
{
    long online;

    for (size_t n = CPU_SETSIZE; n <= PROCESSORS_MAX; n *= 2) {
        size_t size = CPU_ALLOC_SIZE(n);
        cpu_set_t *set = CPU_ALLOC(n);
        int failed, count;

        if (set == NULL)
            break;
        CPU_ZERO_S(size, set);
        failed = sched_getaffinity(0, size, set) == -1 ? errno : 0;
        count = CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (failed == 0 && count > 0)
            return (unsigned)count;
        if (failed != EINVAL) /* EINVAL: the kernel's mask is larger */
            break;
    }
    online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

unsigned cpu_allowed_below(const char *root)
{
    unsigned count = count_affinity();
    unsigned quota = cgroup_cpu_quota(root);

    assert(count > 0);
    return quota != 0 && quota < count ? quota : count;
}

unsigned cpu_allowed(void)
{
    return cpu_allowed_below("");
}

int cpu_open_load(void)
{
    return open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
}

/* Reads "0.03 0.06 0.01 2/345 6789", where 2 are runnable. */
long cpu_count_runnable(int fd)
{
    char text[64];
    ssize_t n = fd != -1 ? pread(fd, text, sizeof(text) - 1, 0) : -1;
    long runnable;

    if (n <= 0)
        return -1;
    text[n] = '\0';
    return sscanf(text, "%*s %*s %*s %ld/", &runnable) == 1 ? runnable : -1;
}

long cpu_count_switches(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

bool cpu_mask_is_supported(void)
{
    return true;
}

int cpu_mask_bind(const struct cpu_mask *mask)
{
    cpu_set_t set;

    static_assert(CPU_MASK_MAX == CPU_SETSIZE, "the manual says how many there are");
    CPU_ZERO(&set);
    for (unsigned cpu = 0; cpu < CPU_MASK_MAX; cpu++)
        if (cpu_mask_has(mask, cpu))
            CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof(set), &set);
}

bool cpu_mask_find_own(struct cpu_mask *out)
{
    cpu_set_t set;

    *out = (struct cpu_mask) { { 0 } };
    if (sched_getaffinity(0, sizeof(set), &set) == -1)
        return false;
    for (unsigned cpu = 0; cpu < CPU_MASK_MAX; cpu++)
        if (CPU_ISSET(cpu, &set))
            cpu_mask_add(out, cpu);
    return true;
}

bool cpu_mask_find_usable(struct cpu_mask *out)
{
    struct cpu_mask before, all;
    bool known;

    memset(&all, 0xff, sizeof(all));
    if (!cpu_mask_find_own(&before) || cpu_mask_bind(&all) == -1)
        return false;
    known = cpu_mask_find_own(out);
    cpu_mask_bind(&before);
    return known && cpu_mask_count(out) > 0;
}

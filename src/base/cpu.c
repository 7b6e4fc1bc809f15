/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the processors of the affinity mask and of the control group, and picks masks for workers.
 * Counts runnable threads, too. No function fails: where the kernel gives no answer, the result is
 * one processor, and no number of threads. */
#include "base/cpu.h"

#include "base/cgroup.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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

void cpu_auto(const cpu_set_t *allowed, unsigned index, cpu_set_t *out)
{
    unsigned count = (unsigned)CPU_COUNT(allowed);

    CPU_ZERO(out);
    if (count == 0)
        return;
    index %= count;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, allowed))
            continue;
        if (index == 0) {
            CPU_SET(cpu, out);
            return;
        }
        index--;
    }
    assert(!"the mask has fewer processors than it counts");
}

bool cpu_find_usable(cpu_set_t *out)
{
    cpu_set_t before, all;
    bool known;

    memset(&all, 0xff, sizeof(all));
    if (sched_getaffinity(0, sizeof(before), &before) == -1 ||
        sched_setaffinity(0, sizeof(all), &all) == -1)
        return false;
    known = sched_getaffinity(0, sizeof(*out), out) == 0;
    sched_setaffinity(0, sizeof(before), &before);
    return known && CPU_COUNT(out) > 0;
}

const char *cpu_parse_mask(const char *text, cpu_set_t *out)
{
    size_t n = strlen(text);

    CPU_ZERO(out);
    if (text[strspn(text, "01")] != '\0' || n == 0)
        return "a mask consists of the digits 0 and 1";
    if (n > CPU_SETSIZE)
        return "a mask has at most 1024 digits";
    for (size_t cpu = 0; cpu < n; cpu++)
        if (text[n - 1 - cpu] == '1')
            CPU_SET(cpu, out);
    return CPU_COUNT(out) > 0 ? NULL : "a mask needs at least one processor";
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

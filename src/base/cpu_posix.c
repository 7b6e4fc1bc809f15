/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the machine's processors, and how often the process has lost one. POSIX tells neither how
 * many processors a process may use nor how many threads are runnable, and binds none to a
 * processor. */
#include "base/cpu.h"
#include "base/cpu_mask.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

unsigned cpu_allowed_below(const char *root)
{
    (void)root;
    return cpu_allowed();
}

unsigned cpu_allowed(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    return online > 0 ? (unsigned)online : 1;
}

int cpu_open_load(void)
{
    return -1;
}

long cpu_count_runnable(int fd)
{
    (void)fd;
    return -1;
}

long cpu_count_switches(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

bool cpu_mask_is_supported(void)
{
    return false;
}

int cpu_mask_bind(const struct cpu_mask *mask)
{
    (void)mask;
    errno = ENOTSUP;
    return -1;
}

bool cpu_mask_find_own(struct cpu_mask *out)
{
    (void)out;
    return false;
}

bool cpu_mask_find_usable(struct cpu_mask *out)
{
    (void)out;
    return false;
}

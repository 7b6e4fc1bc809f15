/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes by prctl(), handles by pidfds, processors by sched_setaffinity(), numbers by /proc. */
#include "os/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Undone by a change of the user. */
int os_process_allow_dumps(void)
{
    return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

int os_process_forbid_dumps(void)
{
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int os_process_keep_capabilities(void)
{
    return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
}

int os_process_drop_capabilities(bool but_net_raw)
{
    static const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    const unsigned index = CAP_TO_INDEX(CAP_NET_RAW);
    unsigned kept;

    if (syscall(SYS_capget, &header, data) == -1)
        return -1;
    kept = but_net_raw ? data[index].permitted & CAP_TO_MASK(CAP_NET_RAW) : 0;
    if (memcmp(data, none, sizeof(data)) != 0) {
        memset(data, 0, sizeof(data));
        data[index].effective = data[index].permitted = kept;
        if (syscall(SYS_capset, &header, data) == -1)
            return -1;
    }
    return but_net_raw && kept == 0;
}

int os_process_adopt_orphans(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void os_process_end_with_parent(unsigned seconds)
{
    (void)seconds;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

char *os_process_binary(void)
{
    char target[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", target, sizeof(target) - 1);

    if (n == -1)
        return NULL;
    target[n] = '\0';
    return strdup(target);
}

unsigned os_thread_count(void)
{
    struct stat st;

    return stat("/proc/self/task", &st) == -1 || st.st_nlink < 2 ? 0 : (unsigned)st.st_nlink - 2;
}

/* A pidfd is readable when the process has ended, reaped or not. */
int os_handle_open(pid_t pid)
{
    assert(pid > 0);
    return pidfd_open(pid, 0);
}

void os_handle_close(int handle)
{
    assert(handle >= 0);
    close(handle);
}

bool os_handle_has_ended(int handle)
{
    struct pollfd ended = { .fd = handle, .events = POLLIN };

    assert(handle >= 0);
    return poll(&ended, 1, 0) == 1;
}

const bool os_handle_is_exact = true;

int os_handle_signal(int handle, int number)
{
    return pidfd_send_signal(handle, number, NULL, 0);
}

int os_handle_descriptor(int handle)
{
    return handle;
}

void os_handle_wait(int handle, int ms)
{
    struct pollfd ended = { .fd = handle, .events = POLLIN };

    poll(&ended, 1, handle != -1 ? ms : 1);
}

const bool os_cpu_binds = true;

int os_cpu_bind(const uint64_t *words, unsigned n)
{
    cpu_set_t set;

    assert(64 * n == CPU_SETSIZE);
    CPU_ZERO(&set);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if ((words[cpu / 64] >> cpu % 64 & 1) != 0)
            CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof(set), &set);
}

int os_cpu_bound(uint64_t *words, unsigned n)
{
    cpu_set_t set;

    assert(64 * n == CPU_SETSIZE);
    memset(words, 0, n * sizeof(*words));
    if (sched_getaffinity(0, sizeof(set), &set) == -1)
        return -1;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            words[cpu / 64] |= UINT64_C(1) << cpu % 64;
    return 0;
}

int os_cpu_open_load(void)
{
    return open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
}

/* Reads "0.03 0.06 0.01 2/345 6789", where 2 are runnable. */
long os_cpu_count_runnable(int fd)
{
    char text[64];
    ssize_t n = fd != -1 ? pread(fd, text, sizeof(text) - 1, 0) : -1;
    long runnable;

    if (n <= 0)
        return -1;
    text[n] = '\0';
    return sscanf(text, "%*s %*s %*s %ld/", &runnable) == 1 ? runnable : -1;
}

long os_cpu_count_switches(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* By glibc's strerror_r(), which returns them. */
const char *os_error_text(int error, char *text, size_t n)
{
    return strerror_r(error, text, n);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes by POSIX: no attributes, numbers as handles, no choice of processors. */
/* Selects POSIX's strerror_r(), declared without _GNU_SOURCE alone. */
#undef _GNU_SOURCE
#include "os/process.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Functions without a call of POSIX ignore their parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define PAUSE_MS 2

int os_process_allow_dumps(void)
{
    return 0;
}

int os_process_forbid_dumps(void)
{
    return 0;
}

int os_process_keep_capabilities(void)
{
    return 0;
}

int os_process_drop_capabilities(bool but_net_raw)
{
    (void)but_net_raw;
    return 0;
}

int os_process_adopt_orphans(void)
{
    return 0;
}

void os_process_end_with_parent(unsigned seconds)
{
    alarm(seconds);
}

char *os_process_binary(void)
{
    errno = ENOENT;
    return NULL;
}

unsigned os_thread_count(void)
{
    return 0;
}

/* An ended process keeps the pid until the parent has reaped it. */
int os_handle_open(pid_t pid)
{
    assert(pid > 0);
    return kill(pid, 0) == 0 || errno == EPERM ? (int)pid : -1;
}

void os_handle_close(int handle)
{
    assert(handle > 0);
}

bool os_handle_has_ended(int handle)
{
    assert(handle > 0);
    return kill((pid_t)handle, 0) == -1 && errno == ESRCH;
}

const bool os_handle_is_exact = false;

int os_handle_signal(int handle, int number)
{
    assert(handle > 0);
    return kill((pid_t)handle, number);
}

int os_handle_descriptor(int handle)
{
    assert(handle > 0);
    return -1;
}

void os_handle_wait(int handle, int ms)
{
    poll(NULL, 0, ms < PAUSE_MS ? ms : PAUSE_MS);
}

const bool os_cpu_binds = false;

int os_cpu_bind(const uint64_t *words, unsigned n)
{
    errno = ENOTSUP;
    return -1;
}

int os_cpu_bound(uint64_t *words, unsigned n)
{
    errno = ENOTSUP;
    return -1;
}

int os_cpu_open_load(void)
{
    return -1;
}

long os_cpu_count_runnable(int fd)
{
    return -1;
}

long os_cpu_count_switches(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

const char *os_error_text(int error, char *text, size_t n)
{
    if (strerror_r(error, text, n) != 0)
        snprintf(text, n, "Unknown error %d", error);
    return text;
}

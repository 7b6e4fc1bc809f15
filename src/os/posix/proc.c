/* SPDX-License-Identifier: BSD-2-Clause */
/* POSIX tells a parent of a stopped child, and of other processes only whether the pid is in use.
 * Open descriptors of this process are found by trying all numbers. */
#include "os/proc.h"

#include <bsd/unistd.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Functions without a call of POSIX ignore their parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Numbers above are connections alone, neither listed nor inherited. */
#define LISTED_MAX 65536u
#define BATCH 256u

bool os_proc_read(pid_t pid, struct proc_stat *stat)
{
    errno = ENOSYS;
    return false;
}

void os_proc_usage(pid_t pid, struct proc_usage *usage)
{
    *usage = (struct proc_usage) { -1, -1, -1, -1 };
}

/* The report stays for the next call. */
bool os_proc_is_stopped(pid_t child)
{
    siginfo_t info = { .si_pid = 0 };

    return waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == child && info.si_code == CLD_STOPPED;
}

bool os_proc_runs(pid_t pid)
{
    return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
}

void os_proc_name(pid_t pid, char name[32])
{
    strcpy(name, "?");
}

void os_proc_visit(void (*visit)(void *arg, pid_t pid), void *arg)
{
}

int os_proc_visit_sockets(pid_t pid, int (*visit)(void *arg, unsigned long inode), void *arg)
{
    errno = ENOSYS;
    return -1;
}

bool os_proc_has_deleted(pid_t pid, const char *path)
{
    return false;
}

void os_boot_id(char *text, size_t n)
{
    text[0] = '\0';
}

static unsigned first_unlisted(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == -1 || limit.rlim_cur > LISTED_MAX)
        return LISTED_MAX;
    return (unsigned)limit.rlim_cur;
}

/* Tries many descriptors by one poll(): a closed descriptor gets POLLNVAL. */
bool os_descriptors_list(int **fds, unsigned *n)
{
    unsigned end = first_unlisted();
    struct pollfd batch[BATCH];

    *n = 0;
    *fds = malloc((end > 0 ? end : 1) * sizeof(**fds));
    for (unsigned first = 0; *fds != NULL && first < end; first += BATCH) {
        unsigned tried = end - first < BATCH ? end - first : BATCH;

        for (unsigned i = 0; i < tried; i++)
            batch[i] = (struct pollfd) { .fd = (int)(first + i) };
        if (poll(batch, tried, 0) == -1)
            break;
        for (unsigned i = 0; i < tried; i++)
            if ((batch[i].revents & POLLNVAL) == 0)
                (*fds)[(*n)++] = batch[i].fd;
    }
    return *fds != NULL;
}

void os_descriptors_close(unsigned first, unsigned last)
{
    if (last == UINT_MAX) {
        closefrom((int)first);
        return;
    }
    for (unsigned fd = first; fd <= last; fd++)
        close((int)fd);
}

/* A descriptor's file has no name here, but device and inode numbers. */
bool os_descriptor_describe(int fd, char *what, size_t n)
{
    struct stat st;

    if (fstat(fd, &st) == -1)
        return false;
    snprintf(what, n, "device %ju, inode %ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return true;
}

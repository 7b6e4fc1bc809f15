/* SPDX-License-Identifier: BSD-2-Clause */
/* POSIX tells a parent when a signal has stopped its child, and of other processes only whether
 * their number is in use. */
#include "os/proc.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

bool proc_read(pid_t pid, struct proc_stat *stat)
{
    (void)pid;
    (void)stat;
    return false;
}

/* The report stays for the next call. */
bool proc_is_stopped(pid_t child)
{
    siginfo_t info = { .si_pid = 0 };

    return waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == child && info.si_code == CLD_STOPPED;
}

bool proc_runs(pid_t pid)
{
    return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads /proc/PID/stat, whose second field, the name of the process, may hold any character. */
#include "os/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

bool proc_read(pid_t pid, struct proc_stat *stat)
{
    char path[32], text[512] = "", *end;
    FILE *file;
    uint64_t started;
    int parent;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    if (fgets(text, sizeof(text), file) == NULL)
        text[0] = '\0';
    fclose(file);
    end = strrchr(text, ')');
    if (end == NULL || sscanf(end,
                           ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                           "%*d %*d %" SCNu64,
                           &stat->state, &parent, &started) != 3)
        return false;
    stat->parent = parent;
    stat->started = started;
    return true;
}

bool proc_is_stopped(pid_t child)
{
    struct proc_stat stat;

    return proc_read(child, &stat) && (stat.state == 'T' || stat.state == 't');
}

bool proc_runs(pid_t pid)
{
    struct proc_stat stat;

    if (pid <= 0 || (kill(pid, 0) == -1 && errno == ESRCH))
        return false;
    return !proc_read(pid, &stat) || (stat.state != 'Z' && stat.state != 'X');
}

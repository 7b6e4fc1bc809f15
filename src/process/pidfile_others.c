/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks at what other master processes have at our paths: the lock, and second names that they have
 * left when they were killed. A name is removed only where no process has its number, or where that
 * is known to be another process. */
#include "process/pidfile.h"

#include "base/number.h"
#include "os/files.h"
#include "os/proc.h"
#include "process/process_ops.h"
#include "process/worker_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool pidfile_is_taken(const char *path, pid_t *holder)
{
    char name[PATH_MAX];
    bool locked = false;
    int fd = -1;

    *holder = -1;
    if ((size_t)snprintf(name, sizeof(name), "%s.lock", path) < sizeof(name))
        fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd == -1)
        return false;
    locked = os_lock_is_taken(fd);
    close(fd);
    if (locked)
        *holder = pidfile_peek_pid(name);
    return locked;
}

bool pidfile_has_deleted_lock(const char *pid_path, pid_t pid)
{
    const char *slash = strrchr(pid_path, '/'), *base = slash != NULL ? slash + 1 : pid_path;
    char folder[PATH_MAX], path[2 * PATH_MAX];

    snprintf(path, sizeof(path), "%.*s.", (int)(base - pid_path), pid_path);
    if (realpath(path, folder) == NULL)
        return false;
    snprintf(path, sizeof(path), "%s/%s.lock", folder, base);
    return os_proc_has_deleted(pid, path);
}

bool pidfile_is_live(const char *path, pid_t pid)
{
    pid_t holder;

    return pidfile_is_taken(path, &holder) || pidfile_has_deleted_lock(path, pid);
}

bool pidfile_is_stale(const char *path)
{
    pid_t pid = pidfile_peek_pid(path);

    return pid > 0 && !pidfile_is_live(path, pid);
}

void pidfile_visit_quitting(const char *path, pidfile_visit *visit, void *arg)
{
    size_t suffix_n = strlen(PIDFILE_QUIT_SUFFIX), n;
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    char directory[PATH_MAX] = ".";
    const struct dirent *entry;
    int64_t pid;
    DIR *dir;

    n = strlen(base);
    if (slash != NULL)
        snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path) + 1, path);
    dir = opendir(directory);
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, base, n) == 0 &&
            strncmp(entry->d_name + n, PIDFILE_QUIT_SUFFIX, suffix_n) == 0 &&
            number_parse(entry->d_name + n + suffix_n, 1, INT_MAX, &pid) == NUMBER_OK)
            visit(arg, (pid_t)pid, dirfd(dir), entry->d_name);
    if (dir != NULL)
        closedir(dir);
}

/* Removes the second name of a process that has gone. */
static void remove_stale_name(void *arg, pid_t pid, int directory, const char *name)
{
    if ((process_ops->kill(pid, 0) == -1 && errno == ESRCH) || worker_list_has_survived(arg, pid))
        unlinkat(directory, name, 0);
}

void pidfile_remove_stale(const char *path, const char *pid_path)
{
    pidfile_visit_quitting(path, remove_stale_name, (void *)pid_path);
}

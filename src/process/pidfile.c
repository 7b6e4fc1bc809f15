/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes, names and removes the pid file, which other processes may do, too. */
#include "process/pidfile.h"

#include "process/process_ops.h"
#include "process/worker_list.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Refuses to replace anything but a file, such as /dev/null. */
static int check_replaceable(const char *path, struct log *log)
{
    struct stat st;

    if (lstat(path, &st) == -1 || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
        return 0;
    log_write(log, LEVEL_EMERG, 0, "the pid file \"%s\" exists and is not a regular file", path);
    return -1;
}

/* Writes our pid into a file of this name, aside and by a rename. */
static int write_aside(const char *path, struct log *log)
{
    const char *failed = NULL;
    char name[PATH_MAX];
    int fd;

    if (check_replaceable(path, log) == -1)
        return -1;
    if (pidfile_append(name, path, ".XXXXXX") == -1 || (fd = mkostemp(name, O_CLOEXEC)) == -1) {
        log_write(log, LEVEL_EMERG, errno, "mkostemp() \"%s.XXXXXX\" failed", path);
        return -1;
    }
    if (dprintf(fd, "%d\n", (int)process_ops->self()) < 0 || fchmod(fd, 0644) == -1)
        failed = "write";
    if (close(fd) == -1 && failed == NULL)
        failed = "close";
    if (failed == NULL && rename(name, path) == 0)
        return 0;
    if (failed != NULL)
        log_write(log, LEVEL_EMERG, errno, "%s() \"%s\" failed", failed, name);
    else
        log_write(log, LEVEL_EMERG, errno, "rename() \"%s\" to \"%s\" failed", name, path);
    unlink(name);
    return -1;
}

int pidfile_write_pid(struct pidfile *pidfile, struct log *log)
{
    if (pidfile->written && pidfile_peek_pid(pidfile->path) == process_ops->self())
        return 0;
    if (write_aside(pidfile->path, log) == -1)
        return -1;
    pidfile->written = true;
    pidfile_write_holder(pidfile->lock_fd); /* the other process may have written a pid */
    return 0;
}

static void remove_pid(const char *path, struct log *log)
{
    struct pidfile_text text;
    const char *failed = pidfile_read(path, &text);

    if (failed != NULL) {
        if (errno != ENOENT)
            log_write(log, LEVEL_ALERT, errno, "%s() \"%s\" failed", failed, path);
        return;
    }
    if (text.pid == process_ops->self() && unlink(path) == -1 && errno != ENOENT)
        log_write(log, LEVEL_ALERT, errno, "unlink() \"%s\" failed", path);
}

void pidfile_remove_second(struct pidfile *pidfile, struct log *log)
{
    char name[PATH_MAX];

    if (pidfile->second[0] != '\0' && pidfile_append(name, pidfile->path, pidfile->second) == 0)
        remove_pid(name, log);
    pidfile->second[0] = '\0';
}

int pidfile_add_name(struct pidfile *pidfile, const char *suffix, struct log *log)
{
    char name[PATH_MAX];

    assert(strlen(suffix) < sizeof(pidfile->second));
    if (pidfile_append(name, pidfile->path, suffix) == -1) {
        log_write(log, LEVEL_EMERG, errno, "the pid file \"%s\" cannot be moved", pidfile->path);
        return -1;
    }
    if (write_aside(name, log) == -1)
        return -1;
    if (strcmp(pidfile->second, suffix) != 0)
        pidfile_remove_second(pidfile, log);
    strcpy(pidfile->second, suffix);
    return 0;
}

void pidfile_leave_path(struct pidfile *pidfile, struct log *log)
{
    remove_pid(pidfile->path, log); /* unless the path is the other process's by now */
    pidfile->left = true;
}

int pidfile_restore_path(struct pidfile *pidfile, struct log *log)
{
    pidfile->left = false;
    pidfile_remove_second(pidfile, log);
    return pidfile_write_pid(pidfile, log);
}

void pidfile_release(struct pidfile *pidfile, struct log *log)
{
    if (pidfile->written && !pidfile->left && pidfile->lock_fd != -1)
        remove_pid(pidfile->path, log);
    pidfile_remove_second(pidfile, log);
    pidfile_unlock(pidfile, log);
}

pid_t pidfile_read_pid(const char *path, struct log *log)
{
    struct pidfile_text text;
    const char *failed = pidfile_read(path, &text);

    if (failed != NULL) {
        log_write(log, LEVEL_ERROR, errno, "%s() \"%s\" failed", failed, path);
        return -1;
    }
    if (text.pid == -1)
        log_write(log, LEVEL_ERROR, 0, "invalid PID number \"%s\" in \"%s\"", text.bytes, path);
    return text.pid;
}

/* Removes the second name of a process that has gone. */
static void remove_stale_name(void *arg, pid_t pid, int directory, const char *name)
{
    if ((process_ops->kill(pid, 0) == -1 && errno == ESRCH) || worker_list_has_survived(arg, pid))
        unlinkat(directory, name, 0);
}

void pidfile_remove_stale(const char *path, const char *pid_path)
{
    pidfile_visit_beside(path, PIDFILE_QUIT_SUFFIX, remove_stale_name, (void *)pid_path);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks, reads, writes, names and removes the pid file, and visits the files beside the pid file.
 * Another process may create or remove the files between any two steps: a lock with a removed file
 * is tried again. */
#include "pidfile/pidfile.h"

#include "base/number.h"
#include "base/path_check.h"
#include "os/descriptor.h"
#include "os/proc.h"
#include "process/process_ops.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_TRIES 100

const char *pidfile_read(const char *path, struct pidfile_text *text)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int64_t pid;
    ssize_t n;

    if (fd == -1)
        return "open";
    n = read(fd, text->bytes, sizeof(text->bytes) - 1);
    descriptor_close(fd);
    if (n == -1)
        return "read";
    while (n > 0 && (text->bytes[n - 1] == '\n' || text->bytes[n - 1] == '\r'))
        n--;
    text->bytes[n] = '\0';
    text->pid = number_parse(text->bytes, 1, INT_MAX, &pid) == NUMBER_OK ? (pid_t)pid : -1;
    return NULL;
}

pid_t pidfile_peek_pid(const char *path)
{
    struct pidfile_text text;

    return pidfile_read(path, &text) == NULL ? text.pid : -1;
}

int pidfile_append(char name[PATH_MAX], const char *path, const char *suffix)
{
    if ((size_t)snprintf(name, PATH_MAX, "%s%s", path, suffix) < PATH_MAX)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

/* Whether our locked file is the lock beside this path. */
static bool is_lock_of(const struct pidfile *pidfile, const char *path)
{
    char name[PATH_MAX];

    return pidfile_append(name, path, ".lock") == 0 && descriptor_names(pidfile->lock_fd, name) > 0;
}

bool pidfile_is_locked(const struct pidfile *pidfile)
{
    return is_lock_of(pidfile, pidfile->path);
}

bool pidfile_is_at(const struct pidfile *pidfile, const char *path)
{
    return path_is_same(pidfile->path, path) || is_lock_of(pidfile, path);
}

/* Logs the lock's holder. The kernel does not show the pid, but the lock's file contains it, unless
 * the pid belongs to a namespace invisible to us. */
static void log_lock_holder(struct log *log, const char *path, const char *name)
{
    pid_t holder = pidfile_peek_pid(name);
    char pid[16] = "";

    if (holder > 0 && (process_ops->kill(holder, 0) == 0 || errno == EPERM))
        snprintf(pid, sizeof(pid), " %d", (int)holder);
    log_write(log, LEVEL_EMERG, 0,
        "another master process%s runs with the pid file \"%s\": "
        "stop it, or set a different \"pid\"",
        pid, path);
    log_note_temporary(log);
}

void pidfile_write_holder(int fd)
{
    char text[16];
    int n = snprintf(text, sizeof(text), "%d\n", (int)process_ops->self());

    if (ftruncate(fd, 0) == -1 || pwrite(fd, text, (size_t)n, 0) == -1)
        errno = 0;
}

/* Refuses the file of another user, who may hold the lock. */
static bool is_our_lock(const char *name, int fd, struct log *log)
{
    struct stat st;

    if (fstat(fd, &st) == -1 || st.st_uid == geteuid())
        return true;
    log_write(log, LEVEL_EMERG, 0,
        "the lock \"%s\" belongs to another user (%u), who could hold it: remove it", name,
        (unsigned)st.st_uid);
    return false;
}

enum lock_try { LOCK_TAKEN, LOCK_RETRY, LOCK_REFUSED };

/* Locks the open lock's file for our pid. LOCK_REFUSED: after an emerg line. */
static enum lock_try try_pidfile_lock(
    const char *path, const char *name, int fd, bool made, struct log *log)
{
    nlink_t names;

    if (!made && !is_our_lock(name, fd, log))
        return LOCK_REFUSED;
    switch (os_lock_try(fd)) {
    case OS_LOCK_DONE:
        break;
    case OS_LOCK_TAKEN:
        log_lock_holder(log, path, name);
        return LOCK_REFUSED;
    default:
        if (errno == EAGAIN)
            return LOCK_RETRY;
        log_write(log, LEVEL_EMERG, errno, "%s \"%s\" failed", os_lock_call, name);
        if (made) /* no process can lock here: the file is of no use */
            unlink(name);
        return LOCK_REFUSED;
    }
    names = descriptor_names(fd, name);
    if (names == 1)
        pidfile_write_holder(fd);
    if (names > 1)
        log_write(log, LEVEL_EMERG, 0,
            "the lock \"%s\" has another name (a hard link), whose file would be written to: "
            "remove it",
            name);
    return names == 1 ? LOCK_TAKEN : names > 1 ? LOCK_REFUSED : LOCK_RETRY;
}

/* Opens and locks the lock's file: a descriptor, or -1 after an emerg line. */
static int open_lock(const char *path, const char *name, struct log *log)
{
    int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;

    for (unsigned i = 0; i < LOCK_TRIES; i++) {
        int fd = open(name, flags | O_EXCL, 0644);
        bool made = fd != -1;
        enum lock_try tried;

        if (!made && errno == EEXIST)
            fd = open(name, flags, 0644);
        if (fd == -1) {
            log_write(log, LEVEL_EMERG, errno, "open() \"%s\" failed", name);
            return -1;
        }
        tried = try_pidfile_lock(path, name, fd, made, log);
        if (tried == LOCK_TAKEN)
            return fd;
        close(fd);
        if (tried == LOCK_REFUSED)
            return -1;
    }
    log_write(log, LEVEL_EMERG, 0,
        "\"%s\" is locked and removed by other processes again and again, giving up", name);
    log_note_temporary(log);
    return -1;
}

/* Finds the master process of the pid file, where its lock was deleted and ours is another file; 0:
 * there is none. The process that has started us for an upgrade is not in our way. */
static pid_t find_unlocked_holder(const char *path)
{
    pid_t pid = pidfile_peek_pid(path);

    if (pid <= 1 || pid == process_ops->self() || pid == process_ops->parent())
        return 0;
    return pidfile_has_deleted_lock(path, pid) ? pid : 0;
}

int pidfile_lock(struct pidfile *pidfile, const char *path, struct log *log)
{
    char name[PATH_MAX];
    pid_t holder;
    int fd;

    *pidfile = (struct pidfile) { .path = path, .lock_fd = -1 };
    if (pidfile_append(name, path, ".lock") == -1) {
        log_write(log, LEVEL_EMERG, errno, "the pid file \"%s\" cannot be locked", path);
        return -1;
    }
    fd = open_lock(path, name, log);
    if (fd == -1)
        return -1;
    holder = find_unlocked_holder(path);
    if (holder != 0) {
        log_write(log, LEVEL_EMERG, 0,
            "another master process %d runs with the pid file \"%s\", whose lock was deleted: stop "
            "it, or have it make the lock again by a reload",
            (int)holder, path);
        log_note_temporary(log);
        unlink(name);
        close(fd);
        return -1;
    }
    pidfile->lock_fd = fd;
    return 0;
}

int pidfile_lock_again(struct pidfile *pidfile, struct log *log)
{
    char name[PATH_MAX];
    int fd;

    assert(pidfile->lock_fd != -1);
    if (pidfile_is_locked(pidfile) || pidfile_append(name, pidfile->path, ".lock") == -1)
        return 0;
    fd = open_lock(pidfile->path, name, log);
    if (fd == -1)
        return -1;
    log_write(log, LEVEL_ALERT, 0,
        "the lock \"%s\" of the pid file was deleted: it is made and locked again", name);
    close(pidfile->lock_fd);
    pidfile->lock_fd = fd;
    pidfile->shared = false; /* the other of two master processes has the deleted lock */
    return 0;
}

void pidfile_close_lock(struct pidfile *pidfile)
{
    descriptor_close(pidfile->lock_fd);
    pidfile->lock_fd = -1;
}

/* Removes the lock's file while locked: a process with the open file sees that the name has gone.
 * The other of two master processes may hold our lock too, unless a second lock succeeds once ours
 * is released. */
void pidfile_unlock(struct pidfile *pidfile, struct log *log)
{
    bool ours = pidfile_is_locked(pidfile);
    char name[PATH_MAX];

    if (ours && pidfile_append(name, pidfile->path, ".lock") == 0 && pidfile->shared) {
        pidfile_close_lock(pidfile);
        pidfile->lock_fd = open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        ours = pidfile->lock_fd != -1 && os_lock_try(pidfile->lock_fd) == OS_LOCK_DONE &&
               pidfile_is_locked(pidfile);
    }
    if (ours && unlink(name) == -1 && errno != ENOENT)
        log_write(log, LEVEL_ALERT, errno, "unlink() \"%s\" failed", name);
    pidfile_close_lock(pidfile);
}

bool pidfile_is_taken(const char *path, pid_t *holder)
{
    char name[PATH_MAX];
    bool locked = false;
    int fd = -1;

    if (pidfile_append(name, path, ".lock") == 0)
        fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd != -1)
        locked = os_lock_is_taken(fd);
    descriptor_close(fd);
    *holder = locked ? pidfile_peek_pid(name) : -1;
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

void pidfile_visit_beside(const char *path, const char *suffix, pidfile_visit *visit, void *arg)
{
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    char directory[PATH_MAX], prefix[PATH_MAX];
    size_t n = (size_t)snprintf(prefix, sizeof(prefix), "%s%s", base, suffix);
    const struct dirent *entry;
    int64_t pid;
    DIR *dir;

    snprintf(directory, sizeof(directory), "%.*s.", (int)(base - path), path);
    dir = opendir(directory);
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, prefix, n) == 0 &&
            number_parse(entry->d_name + n, 1, INT_MAX, &pid) == NUMBER_OK)
            visit(arg, (pid_t)pid, dirfd(dir), entry->d_name);
    if (dir != NULL)
        closedir(dir);
}

/* ---- The pid file ---- */

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

/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks, writes, names and removes the pid file. Another process may create or remove the files
 * between any two steps: a file is read before it is removed, and a lock whose file was removed is
 * tried again. */
#include "process/pidfile.h"

#include "base/number.h"
#include "os/files.h"
#include "process/process_ops.h"

#include <assert.h>
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

/* The text of a pid file. A number that is too long to be a pid still fits, and is shown whole. */
struct pid_text {
    char bytes[64];
};

static int append_suffix(char name[PATH_MAX], const char *path, const char *suffix)
{
    if ((size_t)snprintf(name, PATH_MAX, "%s%s", path, suffix) < PATH_MAX)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

/* Returns how many names the open file has, of which this is one; 0: it no longer is, its previous
 * holder may have removed it. */
static nlink_t names_of(const char *name, int fd)
{
    struct stat open_file, named;

    if (fstat(fd, &open_file) == -1 || lstat(name, &named) == -1 ||
        open_file.st_dev != named.st_dev || open_file.st_ino != named.st_ino)
        return 0;
    return named.st_nlink;
}

static bool is_name_of(const char *name, int fd)
{
    return names_of(name, fd) > 0;
}

/* Reads as much of the file as fits, without newlines at its end. NULL, or the name of
 * the call that failed, with errno. */
static const char *read_text(const char *path, struct pid_text *text)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), error;
    ssize_t n;

    if (fd == -1)
        return "open";
    n = read(fd, text->bytes, sizeof(text->bytes) - 1);
    error = errno;
    close(fd);
    errno = error;
    if (n == -1)
        return "read";
    while (n > 0 && (text->bytes[n - 1] == '\n' || text->bytes[n - 1] == '\r'))
        n--;
    text->bytes[n] = '\0';
    return NULL;
}

static pid_t parse_pid(const struct pid_text *text)
{
    int64_t pid;

    return number_parse(text->bytes, 1, INT_MAX, &pid) == NUMBER_OK ? (pid_t)pid : -1;
}

/* Logs which process has the lock. The kernel does not show it, but the lock's file contains its
 * pid, unless that pid belongs to a namespace that we cannot see. */
static void log_holder(struct log *log, const char *path, const char *name)
{
    struct pid_text text;
    pid_t holder = read_text(name, &text) == NULL ? parse_pid(&text) : -1;

    if (holder > 0 && (process_ops->kill(holder, 0) == 0 || errno == EPERM))
        log_write(log, LEVEL_EMERG, 0,
            "another master process %d runs with the pid file \"%s\": "
            "stop it, or give this one another \"pid\"",
            (int)holder, path);
    else
        log_write(log, LEVEL_EMERG, 0,
            "another master process runs with the pid file \"%s\": "
            "stop it, or give this one another \"pid\"",
            path);
    log_note_temporary(log);
}

/* Writes our pid into the lock's file, for log_holder() alone: a failure does no harm. */
static void write_holder(int fd)
{
    char text[16];
    int n = snprintf(text, sizeof(text), "%d\n", (int)process_ops->self());

    if (ftruncate(fd, 0) == -1 || pwrite(fd, text, (size_t)n, 0) == -1)
        errno = 0;
}

/* Refuses a lock whose file is another user's, who may hold it. */
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

/* Writes our pid into a lock that is ours alone: its descriptor; -1 where another try is worth it;
 * -2 after an emerg line. */
static int take_lock(const char *name, int fd, struct log *log)
{
    nlink_t names = names_of(name, fd);

    if (names == 1) {
        write_holder(fd);
        return fd;
    }
    if (names > 1)
        log_write(log, LEVEL_EMERG, 0,
            "the lock \"%s\" has another name (a hard link), whose file would be written to: "
            "remove it",
            name);
    close(fd);
    return names > 1 ? -2 : -1;
}

/* Tries once to open and lock: a locked descriptor, or -1 where another try is worth it, or -2
 * after an emerg line. */
static int open_locked(const char *path, const char *name, struct log *log)
{
    int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, fd = open(name, flags | O_EXCL, 0644);
    bool made = fd != -1;

    if (!made && errno == EEXIST)
        fd = open(name, flags, 0644);
    if (fd == -1) {
        log_write(log, LEVEL_EMERG, errno, "open() \"%s\" failed", name);
        return -2;
    }
    if (!made && !is_our_lock(name, fd, log)) {
        close(fd);
        return -2;
    }
    switch (os_lock_try(fd)) {
    case OS_LOCK_DONE:
        return take_lock(name, fd, log);
    case OS_LOCK_TAKEN:
        log_holder(log, path, name);
        close(fd);
        return -2;
    default:
        break;
    }
    if (errno != EAGAIN) {
        log_write(log, LEVEL_EMERG, errno, "%s \"%s\" failed", os_lock_call, name);
        if (made) /* no process can lock here: the file is of no use */
            unlink(name);
        close(fd);
        return -2;
    }
    close(fd);
    return -1;
}

/* Opens and locks the lock's file: a descriptor, or -1 after an emerg line. */
static int lock_file(const char *path, const char *name, struct log *log)
{
    int fd = -1;

    for (unsigned i = 0; i < LOCK_TRIES && fd == -1; i++)
        fd = open_locked(path, name, log);
    if (fd == -1) {
        log_write(log, LEVEL_EMERG, 0,
            "\"%s\" is locked and removed by other processes again and again, giving up", name);
        log_note_temporary(log);
    }
    return fd < 0 ? -1 : fd;
}

/* Finds the master process that the pid file names, where its lock was deleted and ours is another
 * one; 0: there is none. The process that has started us for an upgrade is not in our way. */
static pid_t find_unlocked_holder(const char *path)
{
    struct pid_text text;
    pid_t pid = read_text(path, &text) == NULL ? parse_pid(&text) : -1;

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
    if (append_suffix(name, path, ".lock") == -1) {
        log_write(log, LEVEL_EMERG, errno, "the pid file \"%s\" cannot be locked", path);
        return -1;
    }
    fd = lock_file(path, name, log);
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

bool pidfile_is_locked(const struct pidfile *pidfile)
{
    char name[PATH_MAX];

    return append_suffix(name, pidfile->path, ".lock") == 0 && is_name_of(name, pidfile->lock_fd);
}

int pidfile_lock_again(struct pidfile *pidfile, struct log *log)
{
    char name[PATH_MAX];
    int fd;

    assert(pidfile->lock_fd != -1);
    if (append_suffix(name, pidfile->path, ".lock") == -1 || is_name_of(name, pidfile->lock_fd))
        return 0;
    fd = lock_file(pidfile->path, name, log);
    if (fd == -1)
        return -1;
    log_write(log, LEVEL_ALERT, 0,
        "the lock \"%s\" of the pid file was deleted: it is made and locked again", name);
    close(pidfile->lock_fd);
    pidfile->lock_fd = fd;
    pidfile->shared = false; /* the other of two master processes has the deleted one */
    return 0;
}

/* Whether two paths lead to one name in one directory. */
static bool is_same_name(const char *a, const char *b)
{
    const char *name_a = strrchr(a, '/'), *name_b = strrchr(b, '/');
    struct stat of_a, of_b;
    char directory[PATH_MAX];

    if (strcmp(a, b) == 0)
        return true;
    if (name_a == NULL || name_b == NULL || strcmp(name_a, name_b) != 0)
        return false;
    snprintf(directory, sizeof(directory), "%.*s", (int)(name_a - a + 1), a);
    if (stat(directory, &of_a) == -1)
        return false;
    snprintf(directory, sizeof(directory), "%.*s", (int)(name_b - b + 1), b);
    return stat(directory, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

bool pidfile_is_at(const struct pidfile *pidfile, const char *path)
{
    char name[PATH_MAX];

    return is_same_name(pidfile->path, path) ||
           (append_suffix(name, path, ".lock") == 0 && is_name_of(name, pidfile->lock_fd));
}

/* Refuses what the rename would replace although it is no file, as /dev/null. */
static int check_replaceable(const char *path, struct log *log)
{
    struct stat st;

    if (lstat(path, &st) == -1 || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
        return 0;
    log_write(log, LEVEL_EMERG, 0, "the pid file \"%s\" exists and is not a regular file", path);
    return -1;
}

static int write_pid(int fd)
{
    int n = dprintf(fd, "%d\n", (int)process_ops->self());

    if (n < 0 || fchmod(fd, 0644) == -1)
        return -1;
    return 0;
}

/* Writes our pid into a file of this name, aside and by a rename. */
static int write_aside(const char *path, struct log *log)
{
    char name[PATH_MAX];
    int fd, written;

    if (check_replaceable(path, log) == -1)
        return -1;
    if (append_suffix(name, path, ".XXXXXX") == -1 || (fd = mkostemp(name, O_CLOEXEC)) == -1) {
        log_write(log, LEVEL_EMERG, errno, "mkostemp() \"%s.XXXXXX\" failed", path);
        return -1;
    }
    written = write_pid(fd);
    if (written == -1)
        log_write(log, LEVEL_EMERG, errno, "write() \"%s\" failed", name);
    if (close(fd) == -1 && written == 0) {
        log_write(log, LEVEL_EMERG, errno, "close() \"%s\" failed", name);
        written = -1;
    }
    if (written == 0 && rename(name, path) == -1) {
        log_write(log, LEVEL_EMERG, errno, "rename() \"%s\" to \"%s\" failed", name, path);
        written = -1;
    }
    if (written == -1)
        unlink(name);
    return written;
}

static bool names_us(const char *path)
{
    struct pid_text text;

    return read_text(path, &text) == NULL && parse_pid(&text) == process_ops->self();
}

int pidfile_write_pid(struct pidfile *pidfile, struct log *log)
{
    if (pidfile->written && names_us(pidfile->path))
        return 0;
    if (write_aside(pidfile->path, log) == -1)
        return -1;
    pidfile->written = true;
    write_holder(pidfile->lock_fd); /* the other process may have written its own */
    return 0;
}

static void remove_pid(const char *path, struct log *log)
{
    struct pid_text text;
    const char *failed = read_text(path, &text);

    if (failed != NULL) {
        if (errno != ENOENT)
            log_write(log, LEVEL_ALERT, errno, "%s() \"%s\" failed", failed, path);
        return;
    }
    if (parse_pid(&text) == process_ops->self() && unlink(path) == -1 && errno != ENOENT)
        log_write(log, LEVEL_ALERT, errno, "unlink() \"%s\" failed", path);
}

void pidfile_remove_second(struct pidfile *pidfile, struct log *log)
{
    char name[PATH_MAX];

    if (pidfile->second[0] != '\0' && append_suffix(name, pidfile->path, pidfile->second) == 0)
        remove_pid(name, log);
    pidfile->second[0] = '\0';
}

int pidfile_add_name(struct pidfile *pidfile, const char *suffix, struct log *log)
{
    char name[PATH_MAX];

    assert(strlen(suffix) < sizeof(pidfile->second));
    if (append_suffix(name, pidfile->path, suffix) == -1) {
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
    remove_pid(pidfile->path, log); /* unless it is the other process's by now */
    pidfile->left = true;
}

int pidfile_restore_path(struct pidfile *pidfile, struct log *log)
{
    pidfile->left = false;
    pidfile_remove_second(pidfile, log);
    return pidfile_write_pid(pidfile, log);
}

/* Removes the lock's file while it is locked: a process that has opened it before sees that its
 * name has gone. The other of two master processes may hold our lock too; it does not if a
 * second lock succeeds once ours is released. */
static void remove_lock(struct pidfile *pidfile, const char *name, struct log *log)
{
    if (pidfile->shared) {
        pidfile_close_lock(pidfile);
        pidfile->lock_fd = open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (pidfile->lock_fd == -1 || os_lock_try(pidfile->lock_fd) != OS_LOCK_DONE)
            return;
    }
    if (is_name_of(name, pidfile->lock_fd) && unlink(name) == -1 && errno != ENOENT)
        log_write(log, LEVEL_ALERT, errno, "unlink() \"%s\" failed", name);
}

void pidfile_unlock(struct pidfile *pidfile, struct log *log)
{
    char name[PATH_MAX];

    if (append_suffix(name, pidfile->path, ".lock") == 0 && is_name_of(name, pidfile->lock_fd))
        remove_lock(pidfile, name, log);
    pidfile_close_lock(pidfile);
}

void pidfile_release(struct pidfile *pidfile, struct log *log)
{
    if (pidfile->written && !pidfile->left && pidfile->lock_fd != -1)
        remove_pid(pidfile->path, log);
    pidfile_remove_second(pidfile, log);
    pidfile_unlock(pidfile, log);
}

void pidfile_close_lock(struct pidfile *pidfile)
{
    if (pidfile->lock_fd != -1)
        close(pidfile->lock_fd);
    pidfile->lock_fd = -1;
}

pid_t pidfile_peek_pid(const char *path)
{
    struct pid_text text;

    return read_text(path, &text) == NULL ? parse_pid(&text) : -1;
}

pid_t pidfile_read_pid(const char *path, struct log *log)
{
    struct pid_text text;
    const char *failed = read_text(path, &text);
    pid_t pid;

    if (failed != NULL) {
        log_write(log, LEVEL_ERROR, errno, "%s() \"%s\" failed", failed, path);
        return -1;
    }
    pid = parse_pid(&text);
    if (pid == -1)
        log_write(log, LEVEL_ERROR, 0, "invalid PID number \"%s\" in \"%s\"", text.bytes, path);
    return pid;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads lists of workers. A list has records of one size: the machine's boot, the master
 * process, and the workers by their slots, whose records are overwritten when the slot has another
 * one. A worker that has ended keeps its record until then: its start is nobody else's.
 *
 * Files that somebody else could have written are not read, and neither is one of another boot. A
 * master process that is killed between fork() and the line after it leaves a worker that no list
 * has. */
#include "process/worker_list.h"

#include "os/proc.h"
#include "process/process_ops.h"
#include "shm/slot.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".workers."
#define RECORD 40 /* bytes of a record, with its newline */
#define RECORDS_MAX (2 + SLOT_HALVES * SLOT_MAX)

enum { RECORD_BOOT, RECORD_MASTER, RECORD_WORKERS };

/* A record's text, padded. */
struct record {
    char text[RECORD + 1];
};

static void make_record(struct record *record, const char *text)
{
    snprintf(record->text, sizeof(record->text), "%-*.*s\n", RECORD - 1, RECORD - 1, text);
}

/* Makes the record that names this process; false where the system does not say when it was
 * started. */
static bool make_process_record(struct record *record, pid_t pid)
{
    struct proc_stat stat;
    char text[RECORD];

    if (!process_ops->proc_read(pid, &stat))
        return false;
    snprintf(text, sizeof(text), "%d %" PRIu64, (int)pid, stat.started);
    make_record(record, text);
    return true;
}

/* Makes the record of this boot: starts are counted from it. */
static void make_boot_record(struct record *record)
{
    char text[RECORD];

    os_boot_id(text, sizeof(text));
    make_record(record, text);
}

static bool write_record(int fd, unsigned i, const struct record *record)
{
    return pwrite(fd, record->text, RECORD, (off_t)i * RECORD) == RECORD;
}

/* Reads a record; false at the end, and where it has none. */
static bool read_record(int fd, unsigned i, struct record *record)
{
    if (pread(fd, record->text, RECORD, (off_t)i * RECORD) != RECORD)
        return false;
    record->text[RECORD] = '\0';
    return true;
}

static int make_path_of(char path[PATH_MAX], const char *pid_path, pid_t pid)
{
    if (snprintf(path, PATH_MAX, "%s" SUFFIX "%d", pid_path, (int)pid) < PATH_MAX)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

static int make_path(char path[PATH_MAX], const char *pid_path)
{
    return make_path_of(path, pid_path, process_ops->self());
}

/* Begins a list of this name: its descriptor, or -1 with errno. */
static int create_list(const char *path)
{
    struct record boot, master;
    int fd;

    unlink(path); /* made by a process that has had our pid */
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd == -1)
        return -1;
    make_boot_record(&boot);
    errno = ENOENT; /* no /proc */
    if (make_process_record(&master, process_ops->self()) && write_record(fd, RECORD_BOOT, &boot) &&
        write_record(fd, RECORD_MASTER, &master))
        return fd;
    close(fd);
    unlink(path);
    return -1;
}

/* Whether this system ever tells when a process was started. A number alone could be another
 * process's by the time that a list is read. */
static bool starts_are_told(void)
{
    struct proc_stat stat;

    return process_ops->proc_read(process_ops->self(), &stat) || errno != ENOSYS;
}

void worker_list_open(struct worker_list *list, const char *pid_path, struct log *log)
{
    char path[PATH_MAX];

    *list = (struct worker_list) { .fd = -1 };
    if (!starts_are_told())
        return;
    list->pid_path = strdup(pid_path);
    if (list->pid_path != NULL && make_path(path, pid_path) == 0)
        list->fd = create_list(path);
    if (list->fd == -1)
        log_write(log, LEVEL_ALERT, errno,
            "the list of workers \"%s" SUFFIX "%d\" cannot be written: if this process is killed, "
            "the next one will not know its workers",
            pid_path, (int)process_ops->self());
}

/* Whether the name still leads to the open file. */
static bool is_at(int fd, const char *path)
{
    struct stat open_file, named;

    return fstat(fd, &open_file) == 0 && lstat(path, &named) == 0 &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

/* Copies the workers of a list. */
static void copy_workers(const struct worker_list *list, const struct worker_list *to)
{
    struct record record;

    for (unsigned i = RECORD_WORKERS; i < RECORDS_MAX && read_record(list->fd, i, &record); i++)
        write_record(to->fd, i, &record);
}

void worker_list_take_over(struct worker_list *list, pid_t from, struct log *log)
{
    struct worker_list next;
    char path[PATH_MAX];

    if (list->fd == -1)
        return;
    worker_list_open(&next, list->pid_path, log);
    copy_workers(list, &next);
    if (next.fd != -1 && make_path_of(path, list->pid_path, from) == 0)
        unlink(path);
    close(list->fd);
    free(list->pid_path);
    *list = next;
}

void worker_list_move(struct worker_list *list, const char *pid_path, struct log *log)
{
    struct worker_list next;
    char path[PATH_MAX] = "";

    if (list->pid_path == NULL)
        return;
    if (strcmp(list->pid_path, pid_path) == 0) {
        if (list->fd == -1 || make_path(path, pid_path) == -1 || is_at(list->fd, path))
            return;
        log_write(
            log, LEVEL_ALERT, 0, "the list \"%s\" of workers was deleted: it is made again", path);
    }
    worker_list_open(&next, pid_path, log);
    copy_workers(list, &next);
    if (path[0] != '\0' && next.fd == -1) { /* the next reload tries again */
        free(next.pid_path);
        return;
    }
    if (path[0] != '\0') { /* the name is that of the next one */
        close(list->fd);
        list->fd = -1;
    }
    worker_list_close(list);
    *list = next;
}

void worker_list_add(const struct worker_list *list, unsigned slot, pid_t pid)
{
    struct record record;

    assert(slot < SLOT_HALVES * SLOT_MAX && pid > 1);
    if (list->fd != -1 && make_process_record(&record, pid))
        write_record(list->fd, RECORD_WORKERS + slot, &record);
}

void worker_list_close(struct worker_list *list)
{
    char path[PATH_MAX];

    worker_list_tidy(list);
    if (list->fd != -1 && make_path(path, list->pid_path) == 0)
        unlink(path);
    if (list->fd != -1)
        close(list->fd);
    free(list->pid_path);
    *list = (struct worker_list) { .fd = -1 };
}

/* Whether the process lives that the record names; *pid is its pid, *handle what it is held by. */
static bool open_process(const struct record *record, pid_t *pid, int *handle)
{
    struct proc_stat stat;
    uint64_t started;
    int number;

    if (sscanf(record->text, "%d %" SCNu64, &number, &started) != 2 || number < 1)
        return false;
    *pid = number;
    *handle = process_ops->handle_open(*pid);
    if (*handle == -1)
        return false;
    if (process_ops->proc_read(*pid, &stat) && stat.started == started && stat.state != 'Z' &&
        stat.state != 'X')
        return true;
    process_ops->handle_close(*handle);
    return false;
}

/* Whether only we can have written the file. */
static bool is_ours(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Visits the workers of a list, and returns how many live. */
static int visit_workers(
    int fd, pid_t master, void (*visit)(void *arg, const struct left_worker *left), void *arg)
{
    struct left_worker left = { .master = master };
    struct record record;
    int n = 0;

    for (unsigned i = RECORD_WORKERS; i < RECORDS_MAX && read_record(fd, i, &record); i++) {
        if (!open_process(&record, &left.pid, &left.handle))
            continue;
        n++;
        left.slot = i - RECORD_WORKERS;
        if (visit != NULL)
            visit(arg, &left);
        process_ops->handle_close(left.handle);
    }
    return n;
}

/* Visits the workers and returns how many live; -1: the list is in use, or not a list of ours. With
 * `in_use` only our own list is. */
static int visit_list(
    int fd, bool in_use, void (*visit)(void *arg, const struct left_worker *left), void *arg)
{
    struct record boot, written, record;
    pid_t master = 0;
    int handle;

    if (!is_ours(fd) || !read_record(fd, RECORD_BOOT, &written) ||
        !read_record(fd, RECORD_MASTER, &record))
        return -1;
    make_boot_record(&boot);
    if (strcmp(boot.text, written.text) != 0)
        return 0;
    if (open_process(&record, &master, &handle)) {
        process_ops->handle_close(handle);
        if (!in_use || master == process_ops->self())
            return -1;
    }
    return visit_workers(fd, master, visit, arg);
}

/* Visits all lists beside the pid file, and with `tidy` removes those of which no process lives;
 * returns how many workers live. */
static unsigned visit_lists(const char *pid_path, bool tidy, bool in_use,
    void (*visit)(void *arg, const struct left_worker *left), void *arg)
{
    const char *slash = strrchr(pid_path, '/'), *base = slash != NULL ? slash + 1 : pid_path;
    char folder[PATH_MAX], prefix[PATH_MAX];
    unsigned n = 0;
    struct dirent *entry;
    DIR *dir;

    snprintf(folder, sizeof(folder), "%.*s", slash != NULL ? (int)(base - pid_path) : 1,
        slash != NULL ? pid_path : ".");
    snprintf(prefix, sizeof(prefix), "%s" SUFFIX, base);
    dir = opendir(folder);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        int fd, living;

        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd == -1)
            continue;
        living = visit_list(fd, in_use, visit, arg);
        if (tidy && living == 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
        n += living > 0 ? (unsigned)living : 0;
        close(fd);
    }
    if (dir != NULL)
        closedir(dir);
    return n;
}

unsigned worker_list_find_left(const struct worker_list *list,
    void (*visit)(void *arg, const struct left_worker *left), void *arg)
{
    return list->pid_path != NULL ? visit_lists(list->pid_path, false, false, visit, arg) : 0;
}

unsigned worker_list_find_others(const struct worker_list *list,
    void (*visit)(void *arg, const struct left_worker *left), void *arg)
{
    return list->pid_path != NULL ? visit_lists(list->pid_path, false, true, visit, arg) : 0;
}

void worker_list_tidy(const struct worker_list *list)
{
    if (list->pid_path != NULL)
        visit_lists(list->pid_path, true, false, NULL, NULL);
}

bool worker_list_has_survived(const char *pid_path, pid_t master)
{
    char path[PATH_MAX];
    bool survived;
    int fd = -1;

    if (make_path_of(path, pid_path, master) == 0)
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd == -1)
        return false;
    survived = visit_list(fd, false, NULL, NULL) != -1;
    close(fd);
    return survived;
}

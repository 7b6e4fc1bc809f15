/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads lists of workers. A list has records of one size: the machine's boot, the master
 * process, and the workers by slot. A slot's next worker overwrites the record of an ended worker:
 * no other process has the same pid and start.
 *
 * Never reads files that another user could have written, or files of another boot. A master
 * process killed between fork() and the line after it leaves a worker without a record. */
#include "pidfile/worker_list.h"

#include "os/descriptor.h"
#include "os/proc.h"
#include "pidfile/pidfile.h"
#include "process/process_ops.h"
#include "shm/slot.h"

#include <assert.h>
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

/* A record's text, padded, with its newline. */
struct record {
    char text[RECORD + 1];
};

static void make_record(struct record *record, const char *text)
{
    snprintf(record->text, sizeof(record->text), "%-*.*s\n", RECORD - 1, RECORD - 1, text);
}

/* Makes the record of a process; false where the system does not tell the start. */
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

/* Makes the record of this boot, from which starts are counted. */
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

static bool load_record(int fd, unsigned i, struct record *record)
{
    record->text[RECORD] = '\0';
    return pread(fd, record->text, RECORD, (off_t)i * RECORD) == RECORD;
}

static int make_path(char path[PATH_MAX], const char *pid_path, pid_t master)
{
    char suffix[sizeof(SUFFIX) + 16];

    snprintf(suffix, sizeof(suffix), SUFFIX "%d", (int)master);
    return pidfile_append(path, pid_path, suffix);
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

/* Whether this system ever tells starts: a pid alone could be reused. */
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
    if (list->pid_path != NULL && make_path(path, pid_path, process_ops->self()) == 0)
        list->fd = create_list(path);
    if (list->fd == -1)
        log_write(log, LEVEL_ALERT, errno,
            "the list of workers \"%s" SUFFIX "%d\" cannot be written: if this process is killed, "
            "the next one will not know its workers",
            pid_path, (int)process_ops->self());
}

static void copy_workers(const struct worker_list *list, const struct worker_list *to)
{
    struct record record;

    for (unsigned i = RECORD_WORKERS; i < RECORDS_MAX && load_record(list->fd, i, &record); i++)
        write_record(to->fd, i, &record);
}

/* Closes the list's file, wherever its name leads, and goes on with `next`. */
static void replace_worker_list(struct worker_list *list, const struct worker_list *next)
{
    descriptor_close(list->fd);
    free(list->pid_path);
    *list = *next;
}

void worker_list_take_over(struct worker_list *list, pid_t from, struct log *log)
{
    struct worker_list next;
    char path[PATH_MAX];

    if (list->fd == -1)
        return;
    worker_list_open(&next, list->pid_path, log);
    copy_workers(list, &next);
    if (next.fd != -1 && make_path(path, list->pid_path, from) == 0)
        unlink(path);
    replace_worker_list(list, &next);
}

/* Makes the list again after the name was deleted or replaced. */
static void renew_list(struct worker_list *list, struct log *log)
{
    struct worker_list next;
    char path[PATH_MAX];

    if (list->fd == -1 || make_path(path, list->pid_path, process_ops->self()) == -1 ||
        descriptor_names(list->fd, path) > 0)
        return;
    log_write(
        log, LEVEL_ALERT, 0, "the list \"%s\" of workers was deleted: it is made again", path);
    worker_list_open(&next, list->pid_path, log);
    copy_workers(list, &next);
    if (next.fd != -1)
        replace_worker_list(list, &next);
    else
        free(next.pid_path); /* the next reload tries again */
}

void worker_list_move(struct worker_list *list, const char *pid_path, struct log *log)
{
    struct worker_list next;

    if (list->pid_path == NULL)
        return;
    if (strcmp(list->pid_path, pid_path) == 0) {
        renew_list(list, log);
        return;
    }
    worker_list_open(&next, pid_path, log);
    copy_workers(list, &next);
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
    if (list->fd != -1 && make_path(path, list->pid_path, process_ops->self()) == 0)
        unlink(path);
    replace_worker_list(list, &(struct worker_list) { .fd = -1 });
}

/* Opens a handle of the process that a record names; false where the process has ended. */
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

static bool is_our_list(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

struct list_visit {
    worker_list_visit *visit; /* or NULL */
    void *arg;
    bool in_use; /* visits lists of living master processes too, but for our own */
    bool tidy;   /* removes lists of which no process lives */
    unsigned living;
};

static int visit_workers(int fd, pid_t master, const struct list_visit *visit)
{
    struct left_worker left = { .master = master };
    struct record record;
    int n = 0;

    for (unsigned i = RECORD_WORKERS; i < RECORDS_MAX && load_record(fd, i, &record); i++) {
        if (!open_process(&record, &left.pid, &left.handle))
            continue;
        n++;
        left.slot = i - RECORD_WORKERS;
        if (visit->visit != NULL)
            visit->visit(visit->arg, &left);
        process_ops->handle_close(left.handle);
    }
    return n;
}

/* Visits the workers and returns how many live; -1: the list is in use, or not a list of ours. */
static int visit_list(int fd, const struct list_visit *visit)
{
    struct record boot, written, record;
    pid_t master = 0;
    int handle;

    if (!is_our_list(fd) || !load_record(fd, RECORD_BOOT, &written) ||
        !load_record(fd, RECORD_MASTER, &record))
        return -1;
    make_boot_record(&boot);
    if (strcmp(boot.text, written.text) != 0)
        return 0;
    if (open_process(&record, &master, &handle)) {
        process_ops->handle_close(handle);
        if (!visit->in_use || master == process_ops->self())
            return -1;
    }
    return visit_workers(fd, master, visit);
}

static int open_list(int directory, const char *name)
{
    return openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static void visit_list_file(void *arg, pid_t master, int directory, const char *name)
{
    struct list_visit *visit = arg;
    int fd = open_list(directory, name), living;

    (void)master;
    if (fd == -1)
        return;
    living = visit_list(fd, visit);
    if (visit->tidy && living == 0)
        unlinkat(directory, name, 0);
    visit->living += living > 0 ? (unsigned)living : 0;
    close(fd);
}

static unsigned visit_lists(const struct worker_list *list, struct list_visit visit)
{
    if (list->pid_path != NULL)
        pidfile_visit_beside(list->pid_path, SUFFIX, visit_list_file, &visit);
    return visit.living;
}

unsigned worker_list_find_left(const struct worker_list *list, worker_list_visit *visit, void *arg)
{
    return visit_lists(list, (struct list_visit) { .visit = visit, .arg = arg });
}

unsigned worker_list_find_others(
    const struct worker_list *list, worker_list_visit *visit, void *arg)
{
    return visit_lists(list, (struct list_visit) { .visit = visit, .arg = arg, .in_use = true });
}

void worker_list_tidy(const struct worker_list *list)
{
    visit_lists(list, (struct list_visit) { .tidy = true });
}

bool worker_list_has_survived(const char *pid_path, pid_t master)
{
    const struct list_visit none = { .visit = NULL };
    char path[PATH_MAX];
    bool survived;
    int fd = -1;

    if (make_path(path, pid_path, master) == 0)
        fd = open_list(AT_FDCWD, path);
    if (fd == -1)
        return false;
    survived = visit_list(fd, &none) != -1;
    close(fd);
    return survived;
}

/* Removes the second name of a process that has gone. */
static void remove_stale_name(void *arg, pid_t pid, int directory, const char *name)
{
    if ((process_ops->kill(pid, 0) == -1 && errno == ESRCH) || worker_list_has_survived(arg, pid))
        unlinkat(directory, name, 0);
}

void worker_list_remove_stale(const char *path, const char *pid_path)
{
    pidfile_visit_beside(path, PIDFILE_QUIT_SUFFIX, remove_stale_name, (void *)pid_path);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The pid file, and the lock beside it against a second master process. The pid file is written
 * aside and renamed, so no reader finds an empty file; the lock is a separate file (PATH.lock),
 * never replaced by a rename. The lock belongs to an open file, and is inherited: a child closes
 * the file, and the old master process of an upgrade passes the file on. A process without the
 * path has its pid in a second file, PATH.oldbin or PATH.quit.PID. Never removes a file without
 * our pid. */
#pragma once

#include "base/log.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* Suffixes of the second name: of the old master in an upgrade, and of a quitting process. */
#define PIDFILE_OLD_SUFFIX ".oldbin"
#define PIDFILE_QUIT_SUFFIX ".quit." /* and the pid */
#define PIDFILE_SUFFIX_MAX 24

struct pidfile {
    const char *path; /* the caller's */
    int lock_fd;      /* -1: not locked */
    bool written;     /* the file at `path` is ours */
    bool shared;      /* the other of two master processes has, or had, the lock too */
    bool left; /* `path` is another process's, or free: our pid is at the second name alone */
    char second[PIDFILE_SUFFIX_MAX]; /* suffix of a second file with our pid, or "" */
};

/* The text of a pid file: a number that is too long to be a pid still fits, and is shown whole. */
struct pidfile_text {
    char bytes[64];
    pid_t pid; /* -1: the text is no pid */
};

/* Locks. */

/* Locks; -1 after an emerg line that names the holder, or the process with a deleted lock. */
int pidfile_lock(struct pidfile *pidfile, const char *path, struct log *log);
/* Whether the lock's file is still our locked file. */
bool pidfile_is_locked(const struct pidfile *pidfile);
/* Makes and locks a deleted lock's file again; -1 after an emerg line, with the lock as it was. */
int pidfile_lock_again(struct pidfile *pidfile, struct log *log);
/* Whether `path`, however spelled, is this file's, so that a second lock would conflict. */
bool pidfile_is_at(const struct pidfile *pidfile, const char *path);
/* Unlocks, and removes the file unless the other of two master processes has the lock too. */
void pidfile_unlock(struct pidfile *pidfile, struct log *log);
/* Closes the descriptor in a child; the lock stays the master's. */
void pidfile_close_lock(struct pidfile *pidfile);
/* Writes our pid into the lock's file, to be shown alone: a failure does no harm. */
void pidfile_write_holder(int lock_fd);
/* Whether any process has the lock of a pid file; *holder is its pid, or -1. */
bool pidfile_is_taken(const char *path, pid_t *holder);
/* Whether a process has the lock's deleted file open, as far as the system shows. */
bool pidfile_has_deleted_lock(const char *pid_path, pid_t pid);
/* Whether the pid of a pid file, or of the old master's, is a master's, and not reused. */
bool pidfile_is_live(const char *path, pid_t pid);
/* Whether the pid file has the pid of no master process. */
bool pidfile_is_stale(const char *path);
/* Reads a pid file; NULL, or the name of the call that failed, with errno. */
const char *pidfile_read(const char *path, struct pidfile_text *text);
/* Reads the pid in a file; -1 without a line where there is none. */
pid_t pidfile_peek_pid(const char *path);
/* Makes the name PATH and suffix; -1 with errno: the name is too long. */
int pidfile_append(char name[PATH_MAX], const char *path, const char *suffix);
/* Visits the files PATH, suffix and PID, each by its name in an open directory. */
typedef void pidfile_visit(void *arg, pid_t pid, int directory, const char *name);
void pidfile_visit_beside(const char *path, const char *suffix, pidfile_visit *visit, void *arg);

/* The pid file. */

/* Writes our pid, unless already there; -1 after an emerg line. */
int pidfile_write_pid(struct pidfile *pidfile, struct log *log);
/* The steps of a process that leaves the path: our pid is at the second name too, then there alone,
 * and at last at the path alone again. -1 after an emerg line. */
int pidfile_add_name(struct pidfile *pidfile, const char *suffix, struct log *log);
void pidfile_leave_path(struct pidfile *pidfile, struct log *log);
int pidfile_restore_path(struct pidfile *pidfile, struct log *log);
/* Removes the file of the second name, with our pid. */
void pidfile_remove_second(struct pidfile *pidfile, struct log *log);
/* Unlocks, and removes all files; the pid file only with our pid, written by us. */
void pidfile_release(struct pidfile *pidfile, struct log *log);
/* Reads the pid in a file, for -s; -1 after a line with advice. */
pid_t pidfile_read_pid(const char *path, struct log *log);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's calls about processes, signals and time, as a table of operations: the system's
 * (process_ops.c), or a simulation's, with several master processes and workers in one test
 * (tests/plays). master/, pool/, upgrade/ and control/ never call the system directly. Descriptors
 * are the kernel's in both: each simulated process has its own table of descriptors. */
#pragma once

#include "base/clock.h"
#include "base/compiler.h"
#include "os/proc.h"
#include "os/wakeup.h"
#include "process/signals.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define CONFIG_CHECK_MS 60000 /* time limit of a PROCESS_CHECK child */

enum process_kind {
    PROCESS_WORKER, /* `arg` begins with its struct heritage */
    PROCESS_CHECK,  /* checks a configuration, and exits; ends with its parent */
    PROCESS_BINARY, /* executes the new binary of an upgrade */
};

struct process_ops {
    bool checked; /* structures are checked after each wake-up, as in a debug build */

    /* Calls about this process: getpid(), getppid(), setproctitle(), the clocks, _exit(). */
    pid_t (*self)(void);
    pid_t (*parent)(void);
    void (*set_title)(const char *role, const char *arguments);
    void (*read_clock)(struct clock *clock);
    NORETURN void (*exit)(int code);
    /* Forks a child to run `child`, which does not return. In a simulation the memory is shared:
     * the child changes none of the parent's, and has the memory of `arg` until reaped, or, if a
     * worker, only during the call. -1 with errno. */
    pid_t (*fork)(enum process_kind kind, NORETURN void (*child)(void *arg), void *arg);
    /* Forks a child that takes the place of this process: returns 0 in the child, which goes on
     * with everything of this process. In this process `parent` runs, and if `parent` returns, so
     * does the call, with the child's pid. In a simulation the memory is shared, and the child runs
     * first: `parent` uses nothing but `arg`, made by malloc() and freed by `parent`, even without
     * a return. -1 with errno, and then `arg` stays the caller's. */
    pid_t (*fork_heir)(void (*parent)(void *arg, pid_t heir), void *arg);
    /* execve(): returns only when it fails, with errno. */
    int (*execute)(const char *path, char *const arguments[], char *const environment[]);
    /* Finds an exited child and does not reap it, so that no process gets its pid; 0: none. */
    pid_t (*find_exited)(void);
    /* waitpid(): with `wait` until the exit. Returns the pid, 0: it runs, -1 with errno. `status`
     * may be NULL. */
    pid_t (*reap)(pid_t pid, int *status, bool wait);
    int (*kill)(pid_t pid, int number);
    /* Handles of processes (os/process.h). */
    int (*handle_open)(pid_t pid);
    void (*handle_close)(int handle);
    bool (*handle_has_ended)(int handle);
    int (*handle_signal)(int handle, int number);
    void (*handle_wait)(int handle, int ms);
    /* States of processes (os/proc.h). */
    bool (*proc_read)(pid_t pid, struct proc_stat *stat);
    bool (*proc_is_stopped)(pid_t child);
    void (*proc_usage)(pid_t pid, struct proc_usage *usage);
    bool (*proc_runs)(pid_t pid);
    /* Signals (process/signals.h). A simulation calls signals_deliver() in place of handlers. */
    void (*reset_handlers)(void);
    void (*install_handlers)(enum role role);
    /* Runs the handlers of pending signals, before a command that comes by another way. */
    void (*admit_signals)(void);
    int (*find_pending)(sigset_t *pending);
    int (*raise)(int number);
    /* Sleeps for so many milliseconds, or until a signal comes: its handler runs meanwhile. */
    void (*pause)(int ms);
    /* Sets the interval timer of SIGALRM; -1: stops it. */
    void (*set_alarm)(int ms);
    /* The master's sleep, and its set of descriptors (os/wakeup.h). wakeup_begin() follows
     * signals_install(), and the fork of a child that goes on as the master. */
    int (*wakeup_begin)(void);
    int (*wakeup_add)(int fd);
    void (*wakeup_expect)(int fd, enum wakeup_event event);
    void (*wakeup_remove)(int fd);
    void (*wakeup_sleep)(void);
};

extern const struct process_ops process_ops_system;

/* The operations in use: the system's, unless a simulation has exchanged them. */
extern const struct process_ops *process_ops;

/* Makes a write to a pipe without a reader fail, instead of ending this process. */
void process_ignore_pipe(void);
/* Makes SIGINT, SIGQUIT and SIGTERM end the first process of a container, until handlers are
 * installed: the kernel gives such a process no signal without a handler. */
void process_end_as_first(void);

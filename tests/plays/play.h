/* SPDX-License-Identifier: BSD-2-Clause */
/* A play: whole master processes of the daemon, workers, clients and a service manager in one test
 * process, on a virtual clock. Processes, signals, fork(), execve() and time are simulated (struct
 * process_ops); descriptors are the kernel's. A master process is a thread with a table of
 * descriptors of its own, as left by fork() and execve(); a worker is a script (worker.h), or with
 * whole_workers a thread as well (whole.h). A single process runs at a time, and only at the test's
 * order, so that equal seeds give equal plays. The clock stands still while processes run:
 * play_settle() runs all processes until they wait, and play_pass() moves the clock on from
 * deadline to deadline. */
#pragma once

#include "process/heritage.h"
#include "process/process_ops.h"
#include "support/random.h"
#include "support/test.h"
#include "systemd/notify.h"

#include <bsd/sys/queue.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdio.h>

struct play;
struct play_client;
struct play_server;
struct play_manager;
struct play_watch;
struct play_whole;
struct play_worker;
struct tls_profiles;

enum play_wait {
    PLAY_RUNNABLE,
    PLAY_SLEEPS,         /* until a signal, or a descriptor's event */
    PLAY_PAUSES,         /* likewise, or until `until_ms` */
    PLAY_AWAITS_PROCESS, /* until process `awaited` has exited, or until `until_ms` */
};

struct play_process {
    TAILQ_ENTRY(play_process) link;
    struct play *play;
    pid_t pid;
    struct play_process *parent; /* NULL: the init process, reaping at once */
    enum process_kind kind;
    bool is_master; /* the binary was executed */
    bool exited, stopped;
    int status; /* once it has exited: as of waitpid() */
    uint64_t started_ms;
    pid_t pending[NSIG]; /* blocked signals: the sender's pid, or SIGNALS_BY_KERNEL; 0: none */
    bool has_handlers;   /* false: signals have their default effect */
    uint64_t alarm_ms;   /* 0: not set */

    struct play_worker *worker; /* the script of a worker; NULL: a thread */
    struct play_whole *whole;   /* the thread of a whole worker; NULL: a different process */

    pthread_t thread;
    pid_t thread_id;
    unsigned inherited;             /* the test's descriptors at the start of the process */
    bool has_thread, ended, doomed; /* a doomed thread ends at the next run */
    jmp_buf end; /* longjmp() to the end of the thread, past all cleanup handlers */
    sem_t turn, begun;
    bool kept; /* held by the test: not forgotten after the exit */
    enum play_wait wait;
    pid_t awaited;
    uint64_t until_ms;
    int wakeups;      /* an epoll descriptor of the process's own */
    int wakeups_seen; /* the same in the test; or -1 */
    NORETURN void (*child)(void *arg);
    void (*left)(void *arg, pid_t heir);
    void *arg;
    struct signals_state signals;
    enum role role;
    char **environment;
    struct notify notify;
};

TAILQ_HEAD(play_processes, play_process);
TAILQ_HEAD(play_clients, play_client);
TAILQ_HEAD(play_watches, play_watch);

/* Calls to fail next, and how often. */
struct play_failures {
    unsigned fork, wakeup_add, handle_open, execute;
    unsigned state; /* a new binary does not understand the state handed over */
    unsigned
        call; /* the call of this number from now on, of those in calls.c, fails once; 0: none */
};

struct play {
    char directory[64];
    char address[32]; /* an address of the loopback interface */
    struct clock clock;
    uint64_t state; /* the play's random numbers */
    struct play_processes processes;
    struct play_process *running; /* NULL: the test */
    sem_t turn;                   /* the test's */
    int passing[2];               /* passes descriptors of processes to the test */
    pid_t last_pid;
    char **environment; /* the test's own state */
    struct signals_state *signals;
    struct notify *notify;
    struct play_failures failures;
    unsigned failed_calls;
    unsigned killed_masters; /* by a signal; they leave files behind */
    unsigned long steps;
    pid_t latest; /* the process that ran last */
    /* a worker was forked: a case sets the misbehaviour */
    void (*forked)(struct play *play, struct play_process *process);
    /* a whole worker has accepted a client of the address */
    void (*accepted)(struct play *play, struct play_process *process, const struct sockaddr *client,
        socklen_t length);
    /* a master process, which runs, makes a call: a signal may come now */
    void (*called)(struct play *play, struct play_process *process);
    /* the clock is about to move on, while all processes wait */
    void (*passes)(struct play *play, uint64_t ms);
    void *arg;                      /* the case's */
    struct play_server *server;     /* outside of the daemon (server.h), or NULL */
    bool whole_workers;             /* workers are forked as whole ones */
    const struct tls_profiles *tls; /* of each configuration with keepers; or NULL */
    struct play_watches watches;
    int packets;  /* a socket to itself (network.c) */
    int arrivals; /* an epoll descriptor, for clients of listeners in `watches` */
    struct play_clients clients;
    struct play_manager *manager; /* NULL: there is no service manager */
};

/* Makes a play in a new directory. */
struct play *play_create(uint64_t seed);
/* Ends the play: all processes are killed that have not exited, and the directory is removed. */
void play_destroy(struct play *play);

/* Writes the configuration: `workers` processes, `main` in the main context, `stream` within the
 * stream block, beside a listener on DIRECTORY/socket. */
void play_configure(struct play *play, unsigned workers, const char *main, const char *stream);
/* Writes a file of the play's directory; $D stands for the directory, and $A for an address of the
 * loopback interface unused by other processes. */
void play_write(struct play *play, const char *name, const char *text);
const char *play_path(const struct play *play, const char *name);
/* Reads a file of the directory whole; free() it. "" where there is none. */
char *play_read(const struct play *play, const char *name);
/* Whether the error log, or the standard error of a start, has this text. */
bool play_has_logged(const struct play *play, const char *text);

/* Executes the binary as a child of the init process, and returns the process; it has not run
 * yet. */
struct play_process *play_start(struct play *play);
/* Sends a signal as process 1 would. */
void play_signal(struct play_process *process, int number);
/* Sends a signal as the process of this number would. */
void play_signal_from(struct play_process *process, int number, pid_t sender);
/* Ends a process by a signal without a handler, when it runs next. */
void play_kill(struct play_process *process, int number);

/* Lets a random process run until the next wait; false: all wait. */
bool play_step(struct play *play);
/* Lets all processes run until each waits. */
void play_settle(struct play *play);
/* Moves the clock on, and lets processes with expired deadlines run. */
void play_pass(struct play *play, uint64_t ms);
/* Moves the clock to the earliest deadline; false where no process has one. */
bool play_pass_to_deadline(struct play *play);

struct play_process *play_find(const struct play *play, pid_t pid);
/* The last forked living process of the kind; NULL: none. */
struct play_process *play_find_kind(const struct play *play, enum process_kind kind);
/* The master process of the pid file; NULL: none. */
struct play_process *play_main(const struct play *play);
/* Counts the open descriptors of a process with a thread. */
unsigned play_count_descriptors(const struct play_process *process);
unsigned play_count_workers(const struct play *play);
unsigned play_count_masters(const struct play *play);
/* The exit code of an exited process; 128 and the signal's number after a signal. */
int play_exit_code(const struct play_process *process);

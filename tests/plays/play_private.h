/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by the files of a play. */
#pragma once

#include "plays/play.h"
#include "settings/feature.h"
#include "tls/engine.h"

#define PLAY_FIRST_PID 5000000 /* beyond those of the kernel */

/* A packet by which a process passes descriptors to the test: the pid, and the kind. */
struct play_passed {
    pid_t pid;
    enum { PLAY_PASSES_WAKEUPS, PLAY_PASSES_WORKER, PLAY_PASSES_LISTENER } what;
};

/* The play with the running process: the operations cannot find the play otherwise. */
extern struct play *play_now;
extern const struct process_ops play_ops;

/* process.c */

struct play_process *play_process_create(
    struct play *play, struct play_process *parent, enum process_kind kind);
/* Begins a thread for the process, to run `image`. */
void play_process_begin(struct play_process *process);
/* Lets the process run until it waits. */
void play_process_run(struct play_process *process);
/* In a process's thread: lets the test run, until the process is to go on. */
void play_process_yield(struct play_process *process);
/* The process exits with this status of waitpid(); returns only where a script's did. */
void play_process_exit(struct play_process *process, int status);
/* Frees a process that was reaped. */
void play_process_forget(struct play_process *process);
/* Sends a signal: the process ends, stops, keeps the signal pending, or ignores it. */
void play_process_signal(struct play_process *process, int number, pid_t sender);
/* In the process: delivers pending signals; whether there were any. */
bool play_process_admit(struct play_process *process);
/* Whether the process would run now. */
bool play_process_is_runnable(struct play_process *process);
/* The earliest of its deadlines; 0: none. */
uint64_t play_process_deadline(const struct play_process *process);
/* Whether a descriptor has woken the process with the epoll descriptor. */
bool play_was_woken(int wakeups);
/* Whether an epoll descriptor has events; the events stay. */
bool play_is_readable(int epoll);
/* Copies a NULL-terminated list, but not the strings. */
char **play_copy_list(char *const *list);
/* Sends descriptors of the running process to the test. */
void play_process_pass(const struct play_process *process, int what, const int *fds, unsigned n);

/* network.c */

void play_network_open(struct play *play);
void play_network_close(struct play *play);
/* Waits until the kernel has delivered all that was sent to the network. */
void play_network_settle(struct play *play);

/* ops.c: the running process makes a call. */
void play_note_call(void);

/* profiles.c: all features, and one for play_now->tls; and an idle engine. */
const struct feature *const *play_features(void);
extern const struct tls_engine_ops play_engine;

/* image.c */

/* Closes the descriptors of the running thread, as execve() would. */
void play_close_on_exec(void);
/* The binary, from main() on; returns the exit code. */
int play_image(struct play_process *process);

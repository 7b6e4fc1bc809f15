/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps shared by cases: a serving daemon, commands of its control socket, fields of its status,
 * the time until a process is forked or exits. */
#pragma once

#include "plays/client.h"
#include "plays/play.h"
#include "plays/worker.h"

/* A timer set for now expires a millisecond later. */
#define CASE_AT_ONCE_MS 1

/* Starts a daemon with the configuration (play_configure()), required to serve. */
struct play *case_start(unsigned workers, const char *main, const char *stream);
/* Starts the daemon of a configured play; the daemon has to serve. */
void case_serve(struct play *play);
/* Gives a command, and lets all processes run until all wait. */
struct play_client *case_command(struct play *play, const char *command);
/* Gives a command to the control socket `control`, such as "control.oldbin". */
struct play_client *case_command_to(struct play *play, const char *control, const char *command);
/* Reloads, and waits for the end of the probation; the reload has to succeed. */
void case_reload(struct play *play);
/* Gives a command in the same way to the daemon with the control socket `control`. */
void case_reload_of(struct play *play, const char *control);

/* The command was carried out. */
void case_expect_ok(const struct play_client *client);
/* The command has failed, and the reply has the text. */
void case_expect_failure(const struct play_client *client, const char *text);
/* The command has no outcome yet. */
void case_expect_waiting(const struct play_client *client);

/* A file of the play's directory exists. */
bool case_has(const struct play *play, const char *name);
/* Processes and files are left of no daemon: those of the test alone. */
void case_expect_nothing(struct play *play);

/* A client of the listener is served. */
bool case_is_served(struct play *play);
/* Sends a signal, and lets all processes run until all wait. */
void case_signal(struct play_process *process, int number);
/* Upgrades to a new process, with a successful start, and returns the process. */
struct play_process *case_upgrade(struct play *play);
/* Finds the master process other than `master`; NULL: none. */
struct play_process *case_find_other(const struct play_process *master);
/* The master process is the only one, with two workers, and has the names of the configuration. */
void case_expect_alone(const struct play_process *master);

/* A field of the status, as text: "state", or "generations.0.workers.1.state"; "" where there is
 * none. It stays valid until the next call. */
const char *case_status(struct play *play, const char *path);
/* The same for the daemon with the control socket `control`. */
const char *case_status_of(struct play *play, const char *control, const char *path);
/* The number of the serving generation; 0: none. */
unsigned case_generation(struct play *play);
/* Workers have died so often of `cause`, and of nothing else. */
void case_expect_deaths(struct play *play, const char *cause, unsigned n);

/* Moves the clock on until a process is forked; returns the milliseconds. */
uint64_t case_pass_to_fork(struct play *play);
/* Moves the clock on until the process exits; returns how many milliseconds that takes. */
uint64_t case_pass_to_exit(struct play_process *process);
/* Runs single steps until a process of the kind has been forked, and returns it. */
struct play_process *case_step_to_fork(struct play *play, enum process_kind kind);
/* Listens on a path of the directory, as another process would; returns the descriptor. */
int case_listen(const struct play *play, const char *name);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Daemons told to quit, beside new daemons: names, sessions and status. */
#pragma once

#include "daemon/daemon.h"

/* A server that echoes, on a port and on a path. */
#define QUIT_SERVER(listen)                                                                        \
    "stream { server { listen 127.0.0.1:$0" listen "; listen unix:$D/socket; echo; } }"
#define QUIT_ECHO "worker_processes 2; events {} " QUIT_SERVER("")
/* With workers that do not get ready while there is a file "late". */
#define QUIT_HANGS                                                                                 \
    "load_module " MODULES_PATH "/hangs.so; worker_processes 2; events {} stream { server { "      \
    "listen 127.0.0.1:$0; hangs; hangs_while $D/late; } }"
#define QUIT_MODES 3

/* Configurations with each way of accepting. */
extern const char *const quit_modes[QUIT_MODES];

/* Runs -s with the command; returns the exit code. */
int quit_run(struct daemon *daemon, const char *command);
/* A name beside the paths of the next start; valid until the next call. */
const char *quit_name(const char *path, pid_t pid);
/* Whether the process has left the paths, and has its second names. */
bool quit_is_aside(struct daemon *daemon, pid_t pid);
/* Whether it has any second name. */
bool quit_has_names(struct daemon *daemon, pid_t pid);

/* A client whose session has begun; the second, in the given master process. */
int quit_begin_session(const struct daemon *daemon);
int quit_begin_session_of(const struct daemon *daemon, pid_t master);
/* Tells the daemon with sessions to quit, and returns its pid; `daemon` has none then. */
pid_t quit_daemon(struct daemon *daemon);
/* Ends the last session of a process, and sees that exit without a trace. */
void quit_end_session(struct daemon *daemon, int client, pid_t pid);
/* Counts the occurrences of `what` in the text of `status`. */
unsigned quit_count_status(struct daemon *daemon, const char *what);

/* Gives the next start a terminal as its standard error; returns the reading end. */
int quit_open_terminal(struct daemon *daemon);
/* Waits until the terminal shows `text`, and hides it from the next starts. */
void quit_expect_on_terminal(struct daemon *daemon, int terminal, const char *text);

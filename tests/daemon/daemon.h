/* SPDX-License-Identifier: BSD-2-Clause */
/* The real binary under test: a directory and ports of its own, its life from start to end, its
 * log.
 *
 * Everything started by a test ends with the test (resources.h). daemon_finish() fails the test for
 * every unannounced process, file, grave line in the log or text on the standard descriptors that
 * is left, a sanitizer's or valgrind's report among them.
 *
 * FORKBEARD is the binary, FORKBEARD_WRAPPER a command to run the binary under,
 * FORKBEARD_TEST_SANDBOX the mode of the workers' sandbox, FORKBEARD_TEST_USE the event
 * mechanism. */
#pragma once

#include "daemon/resources.h"
#include "support/wait.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#define PORTS_MAX 8
#define TEXTS_MAX 16
#define PASSED_MAX 8

struct daemon {
    char directory[64];
    in_port_t ports[PORTS_MAX]; /* free, in a row, and kept from other processes until the end */
    int reservations[PORTS_MAX];
    unsigned port_n;
    pid_t pid;                 /* pid of the master; 0: none runs */
    const char *log;           /* the error log's name in the directory */
    size_t log_mark;           /* offset in the log up to which text was awaited */
    void (*before_exec)(void); /* runs in the child, or NULL */
    int standard_error;        /* set before daemon_launch(); 0: the file daemon.err */
    int passed[PASSED_MAX];    /* sockets passed to the daemon as by a service manager */
    unsigned passed_n;
    const char *passed_names; /* LISTEN_FDNAMES, or NULL */
    pid_t passed_to;          /* LISTEN_PID; 0: the daemon's own */
    const char *expected[TEXTS_MAX];
    unsigned expected_n;
    const char *owned[TEXTS_MAX];
    unsigned owned_n;
    char *out, *err, *text; /* results of the latest daemon_run(), daemon_text() */
};

struct daemon *daemon_create(unsigned port_n);
/* For tests that count the best mechanism's calls: FORKBEARD_TEST_USE has no effect. */
static inline void daemon_use_best(void)
{
    unsetenv("FORKBEARD_TEST_USE");
}

/* Ends running processes, checks that nothing is left, and removes the directory. */
void daemon_finish(struct daemon *daemon);

/* Writes a file; "$0" to "$7" in the text are ports, "$D" is the directory. */
void daemon_write(struct daemon *daemon, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The configuration file, behind lines for the error log and the pid file. */
void daemon_configure(struct daemon *daemon, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The path of a name in the directory, valid until the next call. */
const char *daemon_path(const struct daemon *daemon, const char *name);
bool daemon_has(const struct daemon *daemon, const char *name);
/* A file's text, valid until the next call. */
const char *daemon_text(struct daemon *daemon, const char *name);

/* A file left at the end; a file written by the test needs no mention. */
void daemon_owns(struct daemon *daemon, const char *name);
/* Grave lines in the log, and lines on standard error, are the test's if they hold the text. */
void daemon_expects(struct daemon *daemon, const char *text);

/* In the foreground: runs the binary on the configuration file, and waits for the pid file. */
void daemon_start(struct daemon *daemon);
/* Starts a daemon with this configuration and number of ports. */
struct daemon *daemon_start_new(unsigned port_n, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Runs the binary without waiting for the pid file. */
void daemon_launch(struct daemon *daemon);
/* In the background, which leaves the pid file's process to us; returns the parent's exit code. */
int daemon_start_background(struct daemon *daemon);
/* Runs the binary with the arguments (ending with NULL) to the end: the exit code, and the output
 * in `out` and `err`. */
int daemon_run(struct daemon *daemon, const char *arg, ...) __attribute__((sentinel));
/* The pid in the pid file, or 0; fails the test where there is a file without a number. */
pid_t daemon_pid(struct daemon *daemon);

void daemon_signal(const struct daemon *daemon, int number);
/* Waits for the end; the exit code, or 128 and the signal. */
int daemon_wait(struct daemon *daemon);
/* Signals, and sees it exit with 0. */
void daemon_stop(struct daemon *daemon, int number);

/* Waits until the text is in the log behind what was waited for before. */
void daemon_wait_log(struct daemon *daemon, const char *text);
/* Lets daemon_wait_log() look only at lines from now on. */
void daemon_mark_log(struct daemon *daemon);
/* Lines with the text in the whole log. */
unsigned daemon_count_log(struct daemon *daemon, const char *text);

/* For before_exec: has a build with sanitizers not look for leaks at the end of a process, which
 * would have another exit code, and lines. */
void daemon_ignore_leaks(void);

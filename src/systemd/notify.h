/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to the service manager of the daemon: systemd, or any manager with sd_notify(3). Only
 * the master process sends, or the single process. No call waits for the manager: messages are
 * queued and sent later, in order. An unreachable manager is logged once, and has no further
 * effect. */
#pragma once

#include "systemd/notify_queue.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Bytes of a status with its NUL; the rest is cut. */
#define NOTIFY_STATUS_MAX 3400
/* Time limit of an exit for a manager that does not read. */
#define NOTIFY_EXIT_MS 5000
/* The line that is logged then. */
#define NOTIFY_EXIT_LATE                                                                           \
    "the service manager has not confirmed messages within %d ms, the exit waits no "              \
    "longer"

/* Most variables that name a service manager. */
#define NOTIFY_VARIABLES 2

/* State of a process towards the service manager; a simulation swaps notify_state. */
struct notify {
    struct notify_queue queue;
    char *socket; /* "NOTIFY_SOCKET=...", or NULL */
    int64_t interval_us;
    char interval[40]; /* "WATCHDOG_USEC=...", or "" */
};

#define NOTIFY_INITIAL { .queue = { .barrier = -1, .fd = -1 } }

extern struct notify *notify_state;

/* Takes the manager's variables from the environment, at the start; `self` is our pid. */
void notify_init(pid_t self, struct log *log);
/* Resends queued messages by `timers`; NULL: the timers end. */
void notify_attend(struct timers *timers, struct log *log);
/* Whether there is a service manager. */
bool notify_is_on(void);
/* Lists NAME=VALUE for another main process, then NULL; valid until notify_forget(). */
void notify_hand_on(char *variables[NOTIFY_VARIABLES]);
/* Ends sending: the service manager's main process is a different process from now on. */
void notify_forget(void);
/* Sends NOTIFY_READY, at the start and at the end of a reload, NOTIFY_STOPPING, at the end of the
 * daemon, or NOTIFY_ALIVE, for the watchdog. */
void notify_tell(struct log *log, enum notify_kind kind);
/* Announces a reload; `now` is the monotonic time. */
void notify_reloading(struct log *log, const struct timespec *now);
/* Sends a line for people, in which bytes that are no characters are replaced. */
void notify_status(struct log *log, const char *text);
/* Names the main process; from the sending on the manager listens to that process alone. */
void notify_mainpid(struct log *log, pid_t pid);
/* Returns the watchdog interval of the manager in ms; 0: the manager has no watchdog. */
uint64_t notify_interval(void);
/* Stores a copy of a descriptor in the manager, or (-1) removes all copies of a name, of printable
 * ASCII without ':' and at most 255 bytes. -1 without a manager, memory or descriptors. */
int notify_store(struct log *log, const char *name, int fd);
/* Whether the manager has confirmed descriptors and the main process, else asks for that. */
bool notify_confirm(struct log *log);
/* Waits for the confirmation by `sleep_for`, for NOTIFY_EXIT_MS at most. */
void notify_wait(struct log *log, void (*sleep_for)(int ms));

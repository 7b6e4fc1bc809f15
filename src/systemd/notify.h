/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to the service manager that has started the daemon and wants them: systemd, or another
 * one that understands sd_notify(3). Only the master process sends, or the single one. No call
 * waits for the manager: what it does not take is sent later, in order. One that cannot be reached
 * is logged once, and has no other effect. */
#pragma once

#include "systemd/notify_queue.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Bytes of a status with its NUL; a longer one is cut. */
#define NOTIFY_STATUS_MAX 3400
/* How long an exit is put off for a manager that does not read. */
#define NOTIFY_EXIT_MS 5000
/* The line that is logged then. */
#define NOTIFY_EXIT_LATE                                                                           \
    "the service manager has not confirmed within %d ms what it was told, the exit waits no "      \
    "longer"

/* Variables of the environment at most that name a service manager to a process. */
#define NOTIFY_VARIABLES 2

/* What a process knows of its service manager, and has to send. A simulation of several processes
 * has one for each, and exchanges notify_state with the process that runs. */
struct notify {
    struct notify_queue queue;
    char *socket; /* "NOTIFY_SOCKET=...", or NULL */
    int64_t interval_us;
    char interval[40]; /* "WATCHDOG_USEC=...", or "" */
};

#define NOTIFY_INITIAL                                                                             \
    {                                                                                              \
        .queue = {.barrier = -1, .socket = { .fd = -1 } }                                          \
    }

extern struct notify *notify_state;

/* Stores the variables of the service manager and removes them from the environment; `self` is our
 * pid. To be called at the start. */
void notify_init(pid_t self, struct log *log);
/* Sends by these timers what has to wait; to be called once they run, and with NULL before they
 * end. */
void notify_attend(struct timers *timers, struct log *log);
/* Whether there is a service manager. */
bool notify_is_on(void);
/* For a process that executes the daemon's binary as the next main process: the variables that
 * were taken out, NAME=VALUE, then NULL. They are valid until notify_forget(). */
void notify_hand_on(char *variables[NOTIFY_VARIABLES]);
/* From now on nothing is sent: another process is the service manager's main one. */
void notify_forget(void);

/* Sends READY=1: at the start, and at the end of a reload. */
void notify_ready(struct log *log);
/* Sends that a reload begins; `now` is the monotonic time. */
void notify_reloading(struct log *log, const struct timespec *now);
/* Sends that the daemon ends. */
void notify_stopping(struct log *log);
/* Sends the status that is shown to people: one line, in which other bytes than characters are
 * replaced. One that waits is replaced by the next. */
void notify_status(struct log *log, const char *text);
/* Names another process as the main one. Once this is sent the manager ignores messages from this
 * process, and not before does it take that one's. */
void notify_mainpid(struct log *log, pid_t pid);
/* Takes back the latest notify_mainpid() if it waits; false: it was sent. */
bool notify_cancel_mainpid(void);

/* Returns the watchdog interval of the manager in ms; 0: the manager has no watchdog. */
uint64_t notify_interval(void);
void notify_alive(struct log *log);

/* Makes the manager keep a copy of a descriptor for the process that follows us, or drop those
 * of a name. Names are printable ASCII without ':', at most 255 bytes. -1 where there is no
 * manager, or no memory or descriptor to wait with. */
int notify_store(struct log *log, const char *name, int fd);
int notify_unstore(struct log *log, const char *name);

/* Whether messages wait that the manager has not taken. */
bool notify_is_waiting(void);
/* Whether the manager has confirmed all that must arrive before we exit: descriptors, and the main
 * process's number. What is missing is asked for. */
bool notify_confirm(struct log *log);
/* Waits until that is so by `sleep_for`, for NOTIFY_EXIT_MS at most: for a process that has nothing
 * else to do any more. */
void notify_wait(struct log *log, void (*sleep_for)(int ms));

/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to the service manager that has started the daemon and wants them: systemd, or another
 * one that understands sd_notify(3). Only the master process sends, or the single one. A failure is
 * logged once and has no other effect. Without libsystemd (notify_none.c) no message is ever
 * sent. */
#pragma once

#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes of a status with its NUL; a longer one is cut. */
#define NOTIFY_STATUS_MAX 3400

/* Stores the variables of the service manager and removes them from the environment. To be called
 * at the start. */
void notify_init(void);
/* Whether there is a service manager. */
bool notify_is_on(void);
/* In a process that is about to execute the daemon's binary as the next main process: puts back
 * what was taken out; -1 with errno. */
int notify_hand_on(void);

/* Sends READY=1: at the start, and at the end of a reload. */
/* From now on nothing is sent: another process is the service manager's main one. */
void notify_forget(void);
void notify_ready(struct log *log);
/* Sends that a reload begins. */
void notify_reloading(struct log *log);
/* Sends that the daemon ends. */
void notify_stopping(struct log *log);
/* Sends the status that is shown to people: one line, in which other bytes than characters are
 * replaced. */
void notify_status(struct log *log, const char *text);
/* Names another process as the main one. From then on the manager ignores messages from this
 * process. */
void notify_mainpid(struct log *log, pid_t pid);

/* Returns the watchdog interval of the manager in ms; 0: the manager has no watchdog. */
uint64_t notify_interval(void);
void notify_alive(struct log *log);

/* Makes the manager keep a copy of a descriptor for the process that follows us, or drop those
 * of a name. Names are printable ASCII without ':', at most 255 bytes. -1 where nothing was
 * sent; the manager sends no reply. */
int notify_store(struct log *log, const char *name, int fd);
int notify_unstore(struct log *log, const char *name);

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the service manager is told, if one has started us that wants to be: systemd, or who speaks
 * its sd_notify(3). Only the master process speaks, or the single one. What fails is logged once, and
 * nothing else comes of it. Without libsystemd (notify_none.c) nobody is told anything. */
#pragma once

#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of a status, with its end: what more there is, is cut. */
#define FB_NOTIFY_STATUS_MAX 3400

/* At the start: remembers what the environment says of the manager, and takes that out of it. */
void fb_notify_init(void);
/* Whether there is one. */
bool fb_notify_is_on(void);
/* In a process that is about to execute the daemon's binary as the next main process: puts back what
 * was taken out; -1 with errno. */
int fb_notify_hand_on(void);

/* We serve: at the start, and at a reload's end. */
void fb_notify_ready(struct fb_log *log);
/* A reload begins. */
void fb_notify_reloading(struct fb_log *log);
/* We end. */
void fb_notify_stopping(struct fb_log *log);
/* What is shown to people: one line, in which other bytes than characters are replaced. */
void fb_notify_status(struct fb_log *log, const char *text);
/* Another process is the main one from now on; said by the one before, which is not listened to
 * any more. */
void fb_notify_mainpid(struct fb_log *log, pid_t pid);

/* How often the manager wants to hear that we are alive, in ms; 0: it does not. */
uint64_t fb_notify_interval(void);
void fb_notify_alive(struct fb_log *log);

/* Has the manager keep a copy of a descriptor for the process that follows us, or forget those of a
 * name. Names are printable ASCII without ':', at most 255 bytes. -1 where it was not told; what it
 * thinks of it, it does not say. */
int fb_notify_store(struct fb_log *log, const char *name, int fd);
int fb_notify_remove(struct fb_log *log, const char *name);

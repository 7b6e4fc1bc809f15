/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the sandbox; private to sandbox.c and to them. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* Landlock (landlock.c). What is in the way of it, and with `error` the errno or 0; NULL: nothing. */
const char *fb_landlock_lacks(int *error);
/* The calling thread and what it starts; -1 with errno. Paths that cannot be opened are logged. */
int fb_landlock_enter(const struct fb_cycle *cycle, struct fb_log *log);

/* The filter of system calls (seccomp.c, or seccomp_none.c in a build without it): the same for all
 * threads of the process. */
const char *fb_seccomp_lacks(int *error);
int fb_seccomp_enter(const struct fb_cycle *cycle);

/* Names of system calls; each list ends with NULL (seccomp_calls.c). */
extern const char *const fb_calls_denied[];      /* that no worker has any business with */
extern const char *const fb_calls_of_exec[];     /* to run programs */
extern const char *const fb_calls_of_io_uring[]; /* which does past the filter what others do */
extern const char *const fb_calls_allowed[];     /* what any worker does: all else is denied */
extern const char *const fb_calls_of_children[]; /* what running programs takes besides */
extern const char *const fb_calls_of_writing[];  /* files that are changed by their names */

/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's environment, descriptors and title. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* Opens /dev/null on those of the descriptors 0 to 2 that are closed, before anything else could be
 * given their numbers; -1 with errno. */
int fb_process_fill_standard(void);

/* Leaves of the environment TZ and what `env` names, and sets what it gives a value. Called once a
 * process; -1 after an emerg line. */
int fb_process_environment(const struct fb_core_settings *core, struct fb_log *log);

/* Goes into the background: the caller is the child, and its parent waits until
 * fb_process_background_done() or the child's end, and exits 0 or 1. -1 after an emerg line.
 * *ready receives what to give to fb_process_background_done(). */
int fb_process_background(int *ready, struct fb_log *log);
/* The daemon serves: standard descriptors go to /dev/null (standard error only when no log goes
 * there), and the parent exits. `ready` may be -1. */
void fb_process_background_done(int ready, bool keep_stderr);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The sandbox of workers: what somebody who has taken one over cannot do with it. It is made of
 * no_new_privs, Landlock (which paths) and a filter of system calls, each worker's own, and is entered
 * when all is set up. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* Whether workers can have the sandbox that the configuration demands; -1 after an emerg line. */
int fb_sandbox_check(const struct fb_cycle *cycle, struct fb_log *log);
/* The same, and notes what it will lack, and what is open to them because protocols need it. */
int fb_sandbox_prepare(const struct fb_cycle *cycle, struct fb_log *log);
/* Enters it, for good and with all that this process starts from now on; -1 after an emerg line where
 * it must not go on. */
int fb_sandbox_enter(const struct fb_cycle *cycle, struct fb_log *log);

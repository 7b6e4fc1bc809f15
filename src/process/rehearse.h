/* SPDX-License-Identifier: BSD-2-Clause */
/* A configuration may bring code of other people along, which may crash or hang: a throw-away process
 * reads it first, modules and all. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* One that is under way. */
struct fb_rehearsal {
    pid_t pid;            /* its process, which whoever reaps it hands back; 0: none is under way */
    uint64_t deadline_ms; /* when it is to be killed, by the monotonic clock; 0: it was */
    struct fb_progress *progress;
};

/* Begins one; -1 after an emerg line. */
int fb_rehearsal_begin(struct fb_rehearsal *rehearsal, const struct fb_cycle_options *options,
    struct fb_log *log, int excerpts);
/* Its deadline has passed: its process will end soon. */
void fb_rehearsal_kill(struct fb_rehearsal *rehearsal);
/* Nobody wants to know any more: its process is ended. */
void fb_rehearsal_drop(struct fb_rehearsal *rehearsal);
/* In another child: lets go of it. */
void fb_rehearsal_forget(struct fb_rehearsal *rehearsal);
/* It has ended, with this status of waitpid(). 0 when the configuration has no mistakes and its code
 * did no harm. -1 after the lines that fb_cycle_load() would have shown, or one that names the module
 * or protocol at fault. */
int fb_rehearsal_end(
    struct fb_rehearsal *rehearsal, int status, const char *conf, struct fb_log *log);

/* All of it, for who has nothing else to do meanwhile. */
int fb_cycle_rehearse(const struct fb_cycle_options *options, struct fb_log *log, int excerpts);

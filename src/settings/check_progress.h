/* SPDX-License-Identifier: BSD-2-Clause */
/* Which module's or protocol's code runs while a configuration is read: told to whoever survives it
 * (process/rehearse.c), in memory that both processes see. */
#pragma once

#include "base/compiler.h"

#include <limits.h>
#include <stdbool.h>

struct fb_conf_word;

struct fb_progress {
    bool done;                 /* the reading has come to its end, whatever it has found */
    bool foreign;              /* code runs that is not the daemon's: */
    char who[PATH_MAX + 16];   /* module "/usr/lib/x.so" */
    char when[64];             /* while it was loaded */
    char where[PATH_MAX + 64]; /* " in FILE:LINE:COLUMN", or "" */
};

/* `word` is where the configuration asks for it, or NULL. `progress` may be NULL. */
void fb_progress_enter(struct fb_progress *progress, const struct fb_conf_word *word,
    const char *when, const char *who_format, ...) FB_PRINTF(4, 5);
void fb_progress_leave(struct fb_progress *progress);

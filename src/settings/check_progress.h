/* SPDX-License-Identifier: BSD-2-Clause */
/* The progress of a configuration check: names the running module or protocol, in memory shared by
 * the checking child and the waiting process, which names the culprit if the child dies. */
#pragma once

#include "base/compiler.h"

#include <limits.h>
#include <stdbool.h>

struct conf_word;

struct check_progress {
    bool done;                 /* the configuration was read to its end, with or without mistakes */
    bool foreign;              /* code of a module or protocol runs, which the texts below name */
    char who[PATH_MAX + 16];   /* module "/usr/lib/x.so" */
    char when[64];             /* while it was loaded */
    char where[PATH_MAX + 64]; /* " in FILE:LINE:COLUMN", or "" */
};

/* Say that code of a module or protocol runs, and that the code has returned. `word` is the place
 * in the configuration, or NULL. `progress` may be NULL. */
void check_progress_enter(struct check_progress *progress, const struct conf_word *word,
    const char *when, const char *who_format, ...) PRINTF_FORMAT(4, 5);
void check_progress_leave(struct check_progress *progress);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The standard error of a worker, where no log takes it by itself: the master has an
 * end of a pipe, and logs the lines. */
#pragma once

#include "process/log_quota.h"
#include "settings/cycle.h"

#include <sys/types.h>

struct output {
    int fd;     /* the master's end; -1: there is none */
    unsigned n; /* bytes of a line whose end has not come */
    char text[512];
};

/* Makes a pipe for a worker that is about to be forked, unless a log takes what it writes; *theirs
 * is the worker's end, or -1. NULL, or the call that has failed, with errno. */
const char *output_open(struct output *output, const struct core_settings *core, int *theirs);
/* Logs what this process has written, all of it when it has died; true: there may be more. */
bool output_read(struct output *output, struct log_quota *lines, pid_t pid, bool all);
/* Makes it wake this process, which goes on as the master; -1 with errno. */
int output_take_over(const struct output *output);
void output_close(struct output *output, struct log_quota *lines, pid_t pid);

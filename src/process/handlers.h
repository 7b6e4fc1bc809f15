/* SPDX-License-Identifier: BSD-2-Clause */
/* The system's side of signals: dispositions, handlers and masks, for process_ops_system. */
#pragma once

#include "process/signals.h"

/* Sets every disposition to its default and blocks nothing. */
void handlers_reset(void);
/* Makes a write to a pipe without a reader fail, instead of ending this process. */
void handlers_ignore_pipe(void);
/* Makes SIGINT, SIGQUIT and SIGTERM end this process, until handlers_install(), if it is the first
 * of a container: the kernel gives such a process no signal that has no handler. */
void handlers_end_first_process(void);
/* Installs a handler for each signal that has a command in this role, ignores the others of the
 * table, and blocks those with a command. */
void handlers_install(enum role role);
/* Unblocks and blocks again, so that the handlers of pending signals run. */
void handlers_admit(void);
/* Returns the signals that are blocked and pending. */
void handlers_find_pending(sigset_t *pending);

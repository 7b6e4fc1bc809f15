/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds out whether systemd's journal reads our standard error, and connects to the journal's
 * socket, which takes lines with their fields. The stream and the socket belong to the process, as
 * the environment does. */
#pragma once

#include <stdbool.h>

/* Reads JOURNAL_STREAM; to be called before process_set_environment(). */
void journal_init(void);
/* Whether standard error is the stream named by JOURNAL_STREAM. */
bool journal_is_stderr(void);
/* Returns the journal's socket, made and if possible connected at the first call; -1: not made. */
int journal_socket(void);
/* Reconnects the socket, also for processes sharing the socket; -1 with errno. */
int journal_connect(void);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds out whether systemd's journal reads our standard error. If it does, lines go to the
 * journal's own socket, with their fields. The stream and the socket are the process's own, as
 * its environment is. */
#pragma once

#include <stdbool.h>

/* Reads JOURNAL_STREAM; to be called before process_set_environment(). */
void journal_init(void);
/* Whether standard error, as it is now, is the stream that JOURNAL_STREAM names. */
bool journal_is_stderr(void);
/* Returns the journal's socket, made at the first call and connected if it can be; -1: not made. */
int journal_socket(void);
/* Connects the socket again, in all processes that have inherited it; -1 with errno. */
int journal_connect(void);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether systemd's journal reads our standard error. Then lines for it go to the journal's own socket,
 * with their fields. Which stream it reads is the process's own, as its environment is. */
#pragma once

#include <stdbool.h>

/* Reads JOURNAL_STREAM; to be called before fb_process_environment(). */
void fb_journal_init(void);
/* Whether standard error, as it is now, is what JOURNAL_STREAM names. */
bool fb_journal_is_stderr(void);
/* The journal's socket, made at the first call and connected if it can be; -1: it could not be made. */
int fb_journal_socket(void);
/* Connects it again, in all processes that have inherited it; -1 with errno. */
int fb_journal_connect(void);

/* SPDX-License-Identifier: BSD-2-Clause */
/* What this process was executed as, so that it can be executed once more: a newer binary may lie at its
 * path by then. Copies are kept from the start on, because arguments are overwritten, the environment
 * is cleared, and the directory may change. They are the process's own. */
#pragma once

/* Keeps path, directory and arguments; to be called first. The environment, which ends with NULL, is
 * kept by the caller. -1 with errno. */
int fb_binary_remember(char **argv, const char *const *environment);
/* Returns where the binary lies; NULL before fb_binary_remember(). */
const char *fb_binary_path(void);
/* In a child: executes the binary, in the directory and with the arguments and environment of our own
 * start. Variables that were meant for our pid alone are left out, and one more is added, "NAME=value".
 * The descriptors listed stay open. Returns only when that fails, with errno. */
void fb_binary_execute(char *variable, const int *fds, unsigned n);

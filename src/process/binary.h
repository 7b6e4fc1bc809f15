/* SPDX-License-Identifier: BSD-2-Clause */
/* What this process was executed as, to execute it once more: a newer binary may lie at its path by
 * then. Arguments and environment are overwritten and cleared later, and the directory may change. */
#pragma once

/* To be called first; the environment, which ends with NULL, is kept by the caller. -1 with errno. */
int fb_binary_remember(char **argv, const char *const *environment);
/* Where it lies; NULL before fb_binary_remember(). */
const char *fb_binary_path(void);
/* In a child: executes it, in the directory and with the arguments and environment of our own start,
 * of which the variables that were meant for our pid alone are left out, and with one more variable,
 * "NAME=value". These descriptors stay open. Returns only when that fails, with errno. */
void fb_binary_execute(char *variable, const int *fds, unsigned n);

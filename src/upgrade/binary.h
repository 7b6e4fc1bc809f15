/* SPDX-License-Identifier: BSD-2-Clause */
/* The binary of this process, so that it can be executed once more: a newer one may lie at its
 * path by then. How it was executed is copied at the start, because arguments are overwritten,
 * the environment is cleared, and the directory may change. */
#pragma once

struct binary {
    char *path; /* absolute; links are not followed, because they lead to the newest binary */
    char *directory;
    char **arguments;               /* end with NULL */
    const char *const *environment; /* ends with NULL; the caller's */
};

/* Keeps path, directory and arguments; to be called first. -1 with errno. */
int binary_remember(struct binary *binary, char **argv, const char *const *environment);
/* Frees what was kept; also after binary_remember() has failed. */
void binary_forget(struct binary *binary);
/* Lists the environment for the new process: that of our own start without the variables that were
 * meant for our pid alone, with those of the service manager, and with one more, "NAME=value". The
 * caller frees the list with free(), and not the strings; NULL without memory. */
char **binary_environment(const struct binary *binary, char *variable);
/* In a child: executes the binary, in the directory and with the arguments of our own start. The
 * descriptors listed stay open. Returns only when that fails, with errno. */
void binary_execute(
    const struct binary *binary, char *const environment[], const int *fds, unsigned n);

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
/* Returns the path that the kernel has executed, the caller's to free; NULL with errno where it
 * does not tell (binary_none.c). */
char *binary_ask_kernel(void);
/* Frees what was kept; also after binary_remember() has failed. */
void binary_forget(struct binary *binary);
/* In a child: executes the binary, in the directory and with the arguments and environment of
 * our own start. Variables that were meant for our pid alone are left out, and one more is
 * added, "NAME=value". The descriptors listed stay open. Returns only when that fails, with
 * errno. */
void binary_execute(const struct binary *binary, char *variable, const int *fds, unsigned n);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The binary of this process, to be executed again: a newer binary may lie at its path by then.
 * Path, directory and arguments are copied at the start, because arguments are overwritten, the
 * environment is cleared, and the directory may change. */
#pragma once

#include "upgrade/exec_state.h"

struct pool;

struct binary {
    char *path; /* absolute; links stay unresolved and lead to the newest binary */
    char *directory;
    char **arguments;               /* end with NULL */
    const char *const *environment; /* ends with NULL; the caller's */
};

/* Keeps path, directory and arguments; to be called first. -1 with errno. */
int binary_remember(struct binary *binary, char **argv, const char *const *environment);
/* Frees the remembered state; also after a failed binary_remember(). */
void binary_forget(struct binary *binary);

/* State of an upgrade's child, kept until the new process serves or has ended. */
struct execution {
    const struct binary *binary;
    struct exec_state_writer state;
    char **environment;
    int link; /* the child's end */
};

/* Writes the state of the serving generation and the environment for the binary, with the lock of
 * the pid file and the child's end of the link; -1 without memory. */
int binary_prepare(struct execution *execution, const struct binary *binary,
    const struct pool *pool, int lock, int link);
/* Frees the memory, if there is any. */
void binary_release(struct execution *execution);
/* In the child: executes the binary of the struct execution; reports a failed start. */
NORETURN void binary_run(void *arg);

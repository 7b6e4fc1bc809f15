/* SPDX-License-Identifier: BSD-2-Clause */
/* The child of an upgrade, from fork() to execve(). It touches nothing of the process that serves,
 * and never returns to it. */
#pragma once

#include "base/compiler.h"
#include "upgrade/binary.h"
#include "upgrade/exec_state.h"

/* Everything that the child needs, made by its parent, who keeps it until the new process serves or
 * has ended. */
struct execution {
    const struct binary *binary;
    struct exec_state_writer state;
    char **environment;
    int link; /* the child's end */
};

/* Adds the environment, when the state has ended; -1 without memory. */
int execution_prepare(struct execution *execution, const struct binary *binary, int link);
/* Frees the memory, if there is any. */
void execution_done(struct execution *execution);
/* Executes the new binary of the struct execution; a failure is reported as the new binary would
 * report its own. */
NORETURN void execution_run(void *arg);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The child of an upgrade, from fork() to execve(). It touches nothing of the process that serves,
 * and never returns to it. */
#pragma once

#include "base/compiler.h"
#include "upgrade/binary.h"
#include "upgrade/exec_state.h"

/* Executes the new binary; a failure is reported as the new binary would report its own. */
NORETURN void upgrade_execute(
    const struct binary *binary, int link, const struct exec_state_writer *state);

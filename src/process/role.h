/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's role, for assertions at the entry of code for a single role. The role is the
 * process's own state, set once known, and again in a forked child. */
#pragma once

#include "process/signals.h"

#include <stdbool.h>

/* Sets the role, and returns the role before. */
enum role role_set(enum role role);
/* Whether the process has this role. True of every role if none was set, as in tests of parts, and
 * of both other roles in a single process, which does the work of master and worker. */
bool role_is(enum role role);

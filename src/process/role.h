/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's role, for assertions at the entry of code that only one role may run. It is the
 * process's own state: set once it is known, and again in a forked child. */
#pragma once

#include "process/signals.h"

#include <stdbool.h>

/* Sets the role, and returns the role before. */
enum role role_set(enum role role);
/* Whether the process has this role. True of every role where none was set, as in the tests of a
 * part, and of both other roles in a single process, which does what a master and a worker must. */
bool role_is(enum role role);

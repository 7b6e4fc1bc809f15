/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's own role, for assertions, set once known, and again in a forked child. */
#pragma once

#include "process/signals.h"

#include <stdbool.h>

enum role role_set(enum role role);
/* Whether the process has this role; true if none was set, and of both in a single process. */
bool role_is(enum role role);

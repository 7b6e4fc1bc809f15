/* SPDX-License-Identifier: BSD-2-Clause */
/* The process's own role, for assertions, set once known, and again in a forked child. */
#pragma once

#include "process/signals.h"

extern enum role role_current; /* ROLE_N: none was set */

enum role role_set(enum role role);
/* Whether the process has this role; true if none was set, and of both in a single process. */
#define role_is(role)                                                                              \
    (role_current == (role) || role_current == ROLE_N || role_current == ROLE_SINGLE)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores the role of the process for assertions. Behaviour never depends on it. */
#include "process/role.h"

static enum role current = ROLE_N;

enum role role_set(enum role role)
{
    enum role before = current;

    current = role;
    return before;
}

bool role_is(enum role role)
{
    return current == role || current == ROLE_N || current == ROLE_SINGLE;
}

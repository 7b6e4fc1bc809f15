/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores the role of the process for assertions. No code may behave differently because of it. */
#include "process/role.h"

static enum role current = ROLE_N;

void role_set(enum role role)
{
    current = role;
}

bool role_is(enum role role)
{
    return current == role || current == ROLE_N || current == ROLE_SINGLE;
}

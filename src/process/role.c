/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the role for assertions; nothing decides by it. */
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the role for assertions; nothing decides by it. */
#include "process/role.h"

static enum fb_role current = FB_ROLES;

void role_set(enum fb_role role)
{
    current = role;
}

bool role_is(enum fb_role role)
{
    return current == role || current == FB_ROLES || current == FB_ROLE_SINGLE;
}

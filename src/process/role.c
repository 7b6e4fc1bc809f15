/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores the role of the process for assertions. Behaviour never depends on it. */
#include "process/role.h"

enum role role_current = ROLE_N;

enum role role_set(enum role role)
{
    enum role before = role_current;

    role_current = role;
    return before;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces seccomp.c in a build without libseccomp: the filter of system calls is reported as
 * missing, and never entered. */
#include "sandbox/confine.h"

#include <errno.h>

const char *sandbox_seccomp_lacks(int *error)
{
    *error = 0;
    return "forkbeard was built without libseccomp";
}

int sandbox_seccomp_enter(const struct cycle *cycle)
{
    (void)cycle;
    errno = ENOSYS;
    return -1;
}

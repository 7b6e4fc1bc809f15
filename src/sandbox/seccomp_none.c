/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces seccomp.c in a build without libseccomp: reported as missing, and never made. */
#include "sandbox/confine.h"

#include <errno.h>

const char *sandbox_seccomp_lacks(int *error)
{
    *error = 0;
    return "forkbeard was built without libseccomp";
}

int sandbox_seccomp_build(const struct cycle *cycle, int fd)
{
    (void)cycle;
    (void)fd;
    errno = ENOSYS;
    return -1;
}

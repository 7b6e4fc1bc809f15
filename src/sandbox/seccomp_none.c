/* SPDX-License-Identifier: BSD-2-Clause */
/* A build without libseccomp. */
#include "sandbox/confine.h"

#include <errno.h>

const char *fb_seccomp_lacks(int *error)
{
    *error = 0;
    return "forkbeard was built without libseccomp";
}

int fb_seccomp_enter(const struct fb_cycle *cycle)
{
    (void)cycle;
    errno = ENOSYS;
    return -1;
}

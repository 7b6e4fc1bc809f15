/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the kernel for what it has executed, by /proc. */
#include "upgrade/binary.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

char *binary_ask_kernel(void)
{
    char target[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", target, sizeof(target) - 1);

    if (n == -1)
        return NULL;
    target[n] = '\0';
    return strdup(target);
}

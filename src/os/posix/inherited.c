/* SPDX-License-Identifier: BSD-2-Clause */
/* POSIX gives a child every mapping of its parent, and has nothing that says otherwise: the
 * first two calls succeed and do nothing. */
#include "os/inherited.h"

#include <sys/mman.h>

const char inherited_call[] = "none";

int inherited_never(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}

int inherited_again(void *base, size_t size)
{
    (void)base;
    (void)size;
    return 0;
}

void inherited_drop(void *base, size_t size)
{
    munmap(base, size);
}

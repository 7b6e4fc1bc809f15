/* SPDX-License-Identifier: BSD-2-Clause */
/* Linux marks the pages themselves. The mark is the mapping's, and stays until it is taken back; a
 * child cannot undo it, because it has no such mapping at all. */
#include "os/inherited.h"

#include <sys/mman.h>

const char inherited_call[] = "madvise()";

int inherited_never(void *base, size_t size)
{
    return madvise(base, size, MADV_DONTFORK);
}

int inherited_again(void *base, size_t size)
{
    return madvise(base, size, MADV_DOFORK);
}

/* The child has no such mapping, and perhaps another one in its place. */
void inherited_drop(void *base, size_t size)
{
    (void)base;
    (void)size;
}

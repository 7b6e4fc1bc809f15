/* SPDX-License-Identifier: BSD-2-Clause */
/* The allocator of the GNU C library keeps freed memory below what is still in use, unless it is
 * asked for it. */
#include "os/heap.h"

#include <malloc.h>

void heap_trim(void)
{
    malloc_trim(0);
}

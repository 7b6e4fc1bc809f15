/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces os/linux/heap.c where the C library has no call for it: the allocator gives memory back, or
 * keeps it, as it likes. */
#include "os/heap.h"

void heap_trim(void)
{
}

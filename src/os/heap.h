/* SPDX-License-Identifier: BSD-2-Clause */
/* The allocator's free memory. Some allocators keep what was freed until they are told to give it
 * back (os/linux/heap.c); others have no such call (os/posix/heap.c). Nothing depends on it but how much
 * memory the process is seen to have. */
#pragma once

/* Gives memory that was freed back to the system, as far as the allocator can. */
void heap_trim(void);

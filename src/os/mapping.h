/* SPDX-License-Identifier: BSD-2-Clause */
/* Large zeroed mappings, of which a page costs nothing before it is touched. munmap() gives them
 * back. */
#pragma once

#include <stddef.h>

/* Maps memory of this process; NULL with errno. */
void *mapping_reserve(size_t n);
/* Maps memory that children of fork() share; NULL with errno. */
void *mapping_reserve_shared(size_t n);

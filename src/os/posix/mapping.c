/* SPDX-License-Identifier: BSD-2-Clause */
/* Large zeroed mappings. Whether the system sets memory aside for them is its own choice. */
#include "os/mapping.h"

#include <assert.h>
#include <sys/mman.h>

static void *reserve(size_t n, int flags)
{
    void *p;

    assert(n > 0);
    p = mmap(NULL, n, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void *mapping_reserve(size_t n)
{
    return reserve(n, MAP_PRIVATE);
}

void *mapping_reserve_shared(size_t n)
{
    return reserve(n, MAP_SHARED);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Large zeroed mappings. Linux is told to reserve no swap space for them. A page that cannot be had
 * when it is touched ends the process, as any page does. */
#include "os/mapping.h"

#include <assert.h>
#include <sys/mman.h>

static void *reserve(size_t n, int flags)
{
    void *p;

    assert(n > 0);
    p = mmap(NULL, n, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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

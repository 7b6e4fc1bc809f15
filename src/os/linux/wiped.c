/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that a child of fork() finds empty. */
#include "os/wiped.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

void *wiped_alloc(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    wiped_mark(p, n);
    return p;
}

void wiped_free(void *p, size_t n)
{
    if (p != NULL)
        munmap(p, n);
}

void wiped_mark(void *p, size_t n)
{
    (void)madvise(p, n, MADV_WIPEONFORK); /* since Linux 4.14 */
}

_Noreturn void wiped_end(void)
{
    _exit(EXIT_FAILURE);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory as any other: POSIX has none that a child of fork() finds empty. */
#include "os/wiped.h"

#include <stdlib.h>
#include <unistd.h>

void *wiped_alloc(size_t n)
{
    return calloc(1, n);
}

void wiped_free(void *p, size_t n)
{
    (void)n;
    free(p);
}

void wiped_mark(void *p, size_t n)
{
    (void)p;
    (void)n;
}

_Noreturn void wiped_end(void)
{
    _exit(EXIT_FAILURE);
}

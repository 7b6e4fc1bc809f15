/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what is wrong. A fault of the protocol is printed and counted; a mistake of the test, or a
 * lack of memory, ends the program. */
#include "kit/kit.h"

#include <stdio.h>
#include <stdlib.h>

void kit_fault(fb_test *test, const char *format, ...)
{
    va_list args;

    CHECK_KIND(test, KIT_TEST);
    test->faults++;
    fprintf(stderr, "%s: ", test->label);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void kit_misused(const char *format, ...)
{
    va_list args;

    fputs("forkbeard-test: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

void *kit_alloc(size_t n)
{
    void *p = calloc(1, n);

    if (p == NULL)
        kit_misused("no memory for the test");
    return p;
}

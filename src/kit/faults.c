/* SPDX-License-Identifier: BSD-2-Clause */
/* How mistakes are told: the protocol's, and the test's. */
#include "kit/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void fb_kit_fault(fb_test *test, const char *format, ...)
{
    va_list args;

    test->faults++;
    fprintf(stderr, "%s: ", test->label);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void fb_kit_misused(const char *format, ...)
{
    va_list args;

    fputs("forkbeard-test: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

void *fb_kit_alloc(size_t n)
{
    void *p = calloc(1, n);

    if (p == NULL)
        fb_kit_misused("no memory for the test");
    return p;
}

int fb_kit_file(const char *text)
{
    int fd = memfd_create("forkbeard-test", MFD_CLOEXEC);
    size_t n = strlen(text);

    if (fd == -1 || write(fd, text, n) != (ssize_t)n)
        fb_kit_misused("no memory for the test's files");
    return fd;
}

char *fb_kit_read(int fd)
{
    struct stat status;
    size_t n = fstat(fd, &status) == 0 ? (size_t)status.st_size : 0;
    char *text = fb_kit_alloc(n + 1);

    if (pread(fd, text, n, 0) != (ssize_t)n)
        fb_kit_misused("a file of the test's cannot be read");
    return text;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults, memory and files, for all files of the kit. A fault of the protocol is
 * printed and counted; a mistake of the test, or a lack of memory, ends the program. */
#include "kit/kit.h"

#include "os/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

int kit_file_create(const char *text, char path[KIT_FILE_PATH])
{
    int fd = os_temporary_create(path, KIT_FILE_PATH);
    size_t n = strlen(text);

    if (fd == -1 || write(fd, text, n) != (ssize_t)n)
        kit_misused("no memory for the test's files");
    return fd;
}

char *kit_file_read(int fd)
{
    struct stat status;
    size_t n = fstat(fd, &status) == 0 ? (size_t)status.st_size : 0;
    char *text = kit_alloc(n + 1);

    if (pread(fd, text, n, 0) != (ssize_t)n)
        kit_misused("a file of the test's cannot be read");
    return text;
}

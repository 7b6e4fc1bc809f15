/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the files of a test. */
#include "kit/kit.h"

#include <sys/stat.h>
#include <unistd.h>

char *kit_file_read(int fd)
{
    struct stat status;
    size_t n = fstat(fd, &status) == 0 ? (size_t)status.st_size : 0;
    char *text = kit_alloc(n + 1);

    if (pread(fd, text, n, 0) != (ssize_t)n)
        kit_misused("a file of the test's cannot be read");
    return text;
}

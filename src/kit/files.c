/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of a test: the parts of a configuration, its report, and the error log. */
#include "kit/kit.h"

#include "os/files.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

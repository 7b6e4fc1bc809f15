/* SPDX-License-Identifier: BSD-2-Clause */
/* Files in memory: the parts of a configuration, its report, and the error log. A test leaves no
 * file on the disk. */
#include "kit/kit.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int kit_file_create(const char *text, char path[KIT_FILE_PATH])
{
    int fd = memfd_create("forkbeard-test", MFD_CLOEXEC);
    size_t n = strlen(text);

    if (fd == -1 || write(fd, text, n) != (ssize_t)n)
        kit_misused("no memory for the test's files");
    snprintf(path, KIT_FILE_PATH, "/proc/self/fd/%d", fd);
    return fd;
}

void kit_file_close(int fd, const char *path)
{
    (void)path;
    close(fd);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Files below the directory of temporary files: the parts of a configuration, its report, and the
 * error log. A test removes those that it has closed. */
#include "kit/kit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int kit_file_create(const char *text, char path[KIT_FILE_PATH])
{
    const char *directory = getenv("TMPDIR");
    size_t n = strlen(text);
    int fd = -1;

    if (snprintf(path, KIT_FILE_PATH, "%s/forkbeard-test.XXXXXX",
            directory != NULL ? directory : "/tmp") < KIT_FILE_PATH)
        fd = mkstemp(path);
    if (fd == -1 || fcntl(fd, F_SETFD, FD_CLOEXEC) == -1 || write(fd, text, n) != (ssize_t)n)
        kit_misused("no room for the test's files");
    return fd;
}

void kit_file_close(int fd, const char *path)
{
    unlink(path);
    close(fd);
}

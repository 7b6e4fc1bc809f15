/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens for writing without waiting for a reader, and puts a link's target in its place. */
#include "os/log_file.h"

#include "os/descriptor.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int log_file_open_to_write(const char *path, int flags)
{
    int fd = open(path, flags, 0644), reader;

    if (fd != -1 || errno != ENXIO)
        return fd;
    reader = open(path, (flags & ~(O_ACCMODE | O_CREAT)) | O_RDWR);
    if (reader == -1) {
        errno = ENXIO; /* a socket; or a FIFO without permission to read */
        return -1;
    }
    fd = open(path, flags, 0644);
    descriptor_close(reader);
    return fd;
}

bool log_file_is_reopenable(int fd, int flags)
{
    struct stat st;

    if (flags == -1 || (flags & O_ACCMODE) == O_RDONLY || fstat(fd, &st) == -1)
        return false;
    if (S_ISREG(st.st_mode))
        return (flags & O_APPEND) != 0;
    return S_ISFIFO(st.st_mode) || (S_ISCHR(st.st_mode) && isatty(fd));
}

int log_file_replace_link(char *path, size_t size, const char *target, size_t n)
{
    char *slash = strrchr(path, '/');
    size_t head = slash == NULL || target[0] == '/' ? 0 : (size_t)(slash + 1 - path);

    if (head + n >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(path + head, target, n + 1);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens files of profiles by their index: regular files alone. */
#include "tls/files.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int tls_file_open(const struct tls_profiles *profiles, uint32_t index)
{
    struct stat stat = { .st_mode = 0 };
    int fd;

    assert(index < profiles->file_n);
    fd = open(profiles->files[index].path,
        (profiles->files[index].appends ? O_WRONLY | O_APPEND | O_CREAT : O_RDONLY) | O_CLOEXEC |
            O_NONBLOCK | O_NOCTTY,
        S_IRUSR | S_IWUSR);
    if (fd == -1)
        return -1;
    if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode))
        return fd;
    close(fd);
    errno = S_ISDIR(stat.st_mode) ? EISDIR : EINVAL;
    return -1;
}

static int open_own_file(struct tls_files *files, uint32_t index)
{
    return tls_file_open(files->profiles, index);
}

struct tls_files tls_files_own(const struct tls_profiles *profiles)
{
    return (
        struct tls_files) { .open = open_own_file, .profiles = profiles, .tried = TLS_PAIRS_TRIED };
}

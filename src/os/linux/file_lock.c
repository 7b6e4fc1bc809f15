/* SPDX-License-Identifier: BSD-2-Clause */
/* Open file description locks, which can be asked for without being taken. */
#include "os/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

const char file_lock_call[] = "fcntl(F_OFD_SETLK)";

enum file_lock_status file_lock_try(int fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return FILE_LOCK_DONE;
    if (errno != EAGAIN && errno != EACCES)
        return FILE_LOCK_FAILED;
    if (fcntl(fd, F_OFD_GETLK, &lock) == -1)
        return FILE_LOCK_FAILED;
    if (lock.l_type == F_UNLCK) { /* released between the two calls */
        errno = EAGAIN;
        return FILE_LOCK_FAILED;
    }
    return FILE_LOCK_TAKEN;
}

bool file_lock_is_taken(int fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

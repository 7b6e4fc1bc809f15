/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks by flock(), which cannot be asked for: who looks takes a shared lock for a moment, so one
 * that is taken is tried again before it is believed. */
#include "os/file_lock.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/file.h>

#define TRIES 5
#define PAUSE_MS 2

const char file_lock_call[] = "flock()";

enum file_lock_status file_lock_try(int fd)
{
    for (int i = 0; i < TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return FILE_LOCK_DONE;
        if (errno != EWOULDBLOCK)
            return FILE_LOCK_FAILED;
        poll(NULL, 0, PAUSE_MS);
    }
    return FILE_LOCK_TAKEN;
}

bool file_lock_is_taken(int fd)
{
    int saved = errno;
    bool taken = flock(fd, LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK;

    flock(fd, LOCK_UN);
    errno = saved;
    return taken;
}

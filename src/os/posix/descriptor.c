/* SPDX-License-Identifier: BSD-2-Clause */
/* New descriptors, whose flags are set once they are there. A descriptor whose flags cannot be set
 * is closed again, and the call has failed. */
#include "os/descriptor.h"

#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* Whether the descriptor has the flags now. An accepted socket may have its listener's, so that
 * O_NONBLOCK is taken away too. */
static bool has_flags(int fd, int flags)
{
    int status = fcntl(fd, F_GETFL);

    assert((flags & ~O_NONBLOCK) == 0);
    if (status == -1 || fcntl(fd, F_SETFD, FD_CLOEXEC) == -1)
        return false;
    return (status & O_NONBLOCK) == flags ||
           fcntl(fd, F_SETFL, (status & ~O_NONBLOCK) | flags) != -1;
}

static int with_flags(int fd, int flags)
{
    if (fd == -1 || has_flags(fd, flags))
        return fd;
    descriptor_close(fd);
    return -1;
}

static int both_with_flags(int ends[2], int flags)
{
    if (has_flags(ends[0], flags) && has_flags(ends[1], flags))
        return 0;
    descriptor_close(ends[0]);
    descriptor_close(ends[1]);
    return -1;
}

int descriptor_socket(int domain, int type, int flags)
{
    return with_flags(socket(domain, type, 0), flags);
}

int descriptor_socketpair(int domain, int type, int flags, int ends[2])
{
    return socketpair(domain, type, 0, ends) == -1 ? -1 : both_with_flags(ends, flags);
}

int descriptor_pipe(int ends[2], int flags)
{
    return pipe(ends) == -1 ? -1 : both_with_flags(ends, flags);
}

int descriptor_accept(int listener, struct sockaddr *address, socklen_t *length, int flags)
{
    return with_flags(accept(listener, address, length), flags);
}

int descriptor_replace(int fd, int place)
{
    assert(fd != place);
    if (dup2(fd, place) == -1)
        return -1;
    return fcntl(place, F_SETFD, FD_CLOEXEC) == -1 ? -1 : place;
}

void descriptor_widen_pipe(int end, int bytes)
{
    (void)end;
    (void)bytes;
}

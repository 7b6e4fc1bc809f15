/* SPDX-License-Identifier: BSD-2-Clause */
/* New descriptors by the calls that take their flags, so that a thread that forks meanwhile finds
 * none without them. Stands on O_NONBLOCK being SOCK_NONBLOCK, as it is on Linux. */
#include "os/descriptor.h"

#include <assert.h>
#include <fcntl.h>
#include <unistd.h>

static_assert(SOCK_NONBLOCK == O_NONBLOCK && SOCK_CLOEXEC == O_CLOEXEC, "one set of flags");

int descriptor_socket(int domain, int type, int flags)
{
    assert((flags & ~O_NONBLOCK) == 0);
    return socket(domain, type | flags | SOCK_CLOEXEC, 0);
}

int descriptor_socketpair(int domain, int type, int flags, int ends[2])
{
    assert((flags & ~O_NONBLOCK) == 0);
    return socketpair(domain, type | flags | SOCK_CLOEXEC, 0, ends);
}

int descriptor_pipe(int ends[2], int flags)
{
    assert((flags & ~O_NONBLOCK) == 0);
    return pipe2(ends, flags | O_CLOEXEC);
}

int descriptor_accept(int listener, struct sockaddr *address, socklen_t *length, int flags)
{
    assert((flags & ~O_NONBLOCK) == 0);
    return accept4(listener, address, length, flags | SOCK_CLOEXEC);
}

int descriptor_replace(int fd, int place)
{
    assert(fd != place);
    return dup3(fd, place, O_CLOEXEC);
}

void descriptor_widen_pipe(int end, int bytes)
{
    fcntl(end, F_SETPIPE_SZ, bytes); /* failing leaves its usual size */
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The C library's functions that close descriptors, in the place of the library's own. */
#include "shims/closing.h"

#include "base/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOUD __attribute__((visibility("default")))

static void (*forgets[4])(unsigned first, unsigned last);

void closing_tell(void (*forget)(unsigned first, unsigned last))
{
    for (size_t i = 0; i < countof(forgets); i++) {
        if (forgets[i] == NULL || forgets[i] == forget) {
            forgets[i] = forget;
            return;
        }
    }
    abort();
}

static void tell_all(unsigned first, unsigned last)
{
    int saved = errno;

    for (size_t i = 0; i < countof(forgets) && forgets[i] != NULL; i++)
        forgets[i](first, last);
    errno = saved;
}

LOUD int close(int fd)
{
    tell_all((unsigned)fd, (unsigned)fd);
    return (int)syscall(SYS_close, fd);
}

LOUD int close_range(unsigned first, unsigned last, int flags)
{
    if ((flags & CLOSE_RANGE_CLOEXEC) == 0)
        tell_all(first, last);
    return (int)syscall(SYS_close_range, first, last, flags);
}

LOUD int dup3(int from, int to, int flags)
{
    if (fcntl(from, F_GETFD) != -1 && from != to)
        tell_all((unsigned)to, (unsigned)to);
    return (int)syscall(SYS_dup3, from, to, flags);
}

LOUD int dup2(int from, int to)
{
    if (from == to)
        return fcntl(from, F_GETFD) == -1 ? -1 : to;
    return dup3(from, to, 0);
}

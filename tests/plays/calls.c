/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of the C library to create or name objects, in the place of the library's own: in a master
 * process of a play a call fails at the play's order, with the error of a lack. */
#include "plays/play_private.h"

#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Whether the current call is to fail. */
static bool fails(int error)
{
    struct play *play = play_now;

    play_note_call();
    if (play == NULL || play->running == NULL || play->failures.call == 0)
        return false;
    if (--play->failures.call > 0)
        return false;
    play->failed_calls++;
    errno = error;
    return true;
}

#define REAL(name) ((typeof(&(name)))dlsym(RTLD_NEXT, #name))

int socketpair(int domain, int type, int protocol, int ends[2])
{
    return fails(EMFILE) ? -1 : REAL(socketpair)(domain, type, protocol, ends);
}

int socket(int domain, int type, int protocol)
{
    return fails(EMFILE) ? -1 : REAL(socket)(domain, type, protocol);
}

int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    return fails(EADDRINUSE) ? -1 : REAL(bind)(fd, address, length);
}

int listen(int fd, int backlog)
{
    return fails(EADDRINUSE) ? -1 : REAL(listen)(fd, backlog);
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    return fails(EMFILE) ? -1 : REAL(accept4)(fd, address, length, flags);
}

int pipe2(int ends[2], int flags)
{
    return fails(EMFILE) ? -1 : REAL(pipe2)(ends, flags);
}

int memfd_create(const char *name, unsigned flags)
{
    return fails(EMFILE) ? -1 : REAL(memfd_create)(name, flags);
}

int rename(const char *from, const char *to)
{
    return fails(ENOSPC) ? -1 : REAL(rename)(from, to);
}

int link(const char *from, const char *to)
{
    return fails(ENOSPC) ? -1 : REAL(link)(from, to);
}

/* Name services are not asked for the groups of `user`: that would be most of a reload's time. */
int getgrouplist(const char *user, gid_t group, gid_t *groups, int *n)
{
    if (play_now == NULL)
        return REAL(getgrouplist)(user, group, groups, n);
    *n = 1;
    *groups = group;
    return 1;
}

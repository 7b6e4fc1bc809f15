/* SPDX-License-Identifier: BSD-2-Clause */
/* The copy is a memfd, sealed before it is loaded: workers inherit the descriptor, and when the
 * master unloads the module it runs code from pages that it may not have read yet. Its descriptor
 * stays open for debuggers. */
#include "os/file_copy.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Flags of Linux 6.3. Older kernels know neither, and their memory can always be loaded. Where the
 * sysctl vm.memfd_noexec is 2, the second is the only one allowed: it forbids execve(), but not
 * dlopen(). */
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define NAME_MOST 200 /* bytes of the memory's name, as /proc/PID/maps shows it */

int file_copy_create(struct file_copy *copy, const char *name)
{
    static const unsigned flags[] = { MFD_EXEC, MFD_NOEXEC_SEAL, 0 };
    char shown[NAME_MOST + 1];

    snprintf(shown, sizeof(shown), "%s", name);
    *copy = (struct file_copy) { .fd = -1 };
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) && copy->fd == -1; i++)
        copy->fd = memfd_create(shown, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags[i]);
    return copy->fd != -1 ? 0 : -1;
}

/* Gives the copy a path that no loaded object has: descriptors' numbers are used again, and
 * dlopen() would return the older object of the same path. The path names this process, not "self",
 * because a debugger opens it too, and must not find a descriptor of its own there. */
static int find_path(struct file_copy *copy)
{
    size_t n = (size_t)sprintf(copy->path, "/proc/%ld/fd/", (long)getpid());
    void *other;

    assert(copy->fd != -1);
    for (; n + sizeof("./2147483647") < sizeof(copy->path); n += 2) {
        snprintf(copy->path + n, sizeof(copy->path) - n, "%d", copy->fd);
        other = dlopen(copy->path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
        if (other == NULL)
            return 0;
        dlclose(other);
        memcpy(copy->path + n, "./", 2);
    }
    errno = EMFILE;
    return -1;
}

int file_copy_finish(struct file_copy *copy)
{
    static const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

    if (fcntl(copy->fd, F_ADD_SEALS, seals) == -1)
        return -1;
    return find_path(copy);
}

int file_copy_keep(struct file_copy *copy)
{
    int fd = copy->fd;

    copy->fd = -1;
    return fd;
}

void file_copy_drop(struct file_copy *copy)
{
    if (copy->fd != -1)
        close(copy->fd);
    copy->fd = -1;
}

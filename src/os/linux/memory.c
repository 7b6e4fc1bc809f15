/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory by mmap() with marks of madvise(), by memfd_create() with seals, and malloc_trim(). */
#include "os/memory.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Headers may be older; the numbers are the kernel's. */
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
/* Linux 6.3. By the sysctl vm.memfd_noexec only MFD_NOEXEC_SEAL may be allowed. */
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define COPY_NAME_MOST 200 /* bytes of the memory's name in /proc/PID/maps */
#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define NO_WRITE_SEALS (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

/* Reserves no swap space: a touch of an unavailable page ends the process. */
static void *map_memory(size_t n, int flags)
{
    void *p;

    assert(n > 0);
    p = mmap(NULL, n, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void *os_memory_reserve(size_t n)
{
    return map_memory(n, MAP_PRIVATE | MAP_NORESERVE);
}

void *os_memory_reserve_shared(size_t n)
{
    return map_memory(n, MAP_SHARED | MAP_NORESERVE);
}

void os_memory_trim(void)
{
    malloc_trim(0);
}

void os_wiped_mark(void *p, size_t n)
{
    (void)madvise(p, n, MADV_WIPEONFORK); /* since Linux 4.14 */
}

const char os_inherited_call[] = "madvise()";

int os_inherited_never(void *base, size_t size)
{
    return madvise(base, size, MADV_DONTFORK);
}

int os_inherited_again(void *base, size_t size)
{
    return madvise(base, size, MADV_DOFORK);
}

/* The child lacks the mapping, and may have mapped other memory at the address. */
void os_inherited_drop(void *base, size_t size)
{
    (void)base;
    (void)size;
}

const char os_segment_create_call[] = "memfd_create()";
const char os_segment_seal_call[] = "fcntl(F_ADD_SEALS)";
const char os_segment_open_call[] = "open()";

int os_segment_create(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

    if (fd == -1 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd;
}

/* No seal against writing: the next generation, and an upgraded master, map the memory too. */
int os_segment_seal(int fd)
{
    return fcntl(fd, F_ADD_SEALS, SIZE_SEALS);
}

/* An older binary may have set fewer seals. */
int os_segment_check(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals == -1)
        return -1;
    if ((seals & NO_WRITE_SEALS) != 0) {
        errno = EPERM;
        return -1;
    }
    return (seals & SIZE_SEALS) == SIZE_SEALS ? 0 : os_segment_seal(fd);
}

void os_segment_release(void *p, size_t n)
{
    int before = errno;

    madvise(p, n, MADV_REMOVE);
    errno = before;
}

/* A mapping of a descriptor that was opened for reading cannot be made writable. */
int os_segment_open_read_only(int fd)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* A memfd, since workers inherit the descriptor, and the master still runs unread pages. */
int os_copy_create(struct os_copy *copy, const char *name)
{
    static const unsigned flags[] = { MFD_EXEC, MFD_NOEXEC_SEAL, 0 };
    char shown[COPY_NAME_MOST + 1];

    snprintf(shown, sizeof(shown), "%s", name);
    *copy = (struct os_copy) { .fd = -1 };
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) && copy->fd == -1; i++)
        copy->fd = memfd_create(shown, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags[i]);
    return copy->fd != -1 ? 0 : -1;
}

/* Finds a path of no loaded object: dlopen() would return the older object of a reused descriptor
 * number. The path has this process's pid, not "self", for debuggers. */
static int find_copy_path(struct os_copy *copy)
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

int os_copy_finish(struct os_copy *copy)
{
    return fcntl(copy->fd, F_ADD_SEALS, F_SEAL_WRITE | SIZE_SEALS) == -1 ? -1
                                                                         : find_copy_path(copy);
}

int os_copy_keep(struct os_copy *copy)
{
    int fd = copy->fd;

    copy->fd = -1;
    return fd;
}

void os_copy_drop(struct os_copy *copy)
{
    if (copy->fd != -1)
        close(copy->fd);
    copy->fd = -1;
}

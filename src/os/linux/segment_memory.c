/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory by memfd_create(), with seals. No seal against writing is set: that would keep the next
 * generation, or an upgraded master, from mapping it. */
#include "os/segment_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

/* Linux 6.3; where vm.memfd_noexec is 2 there is no memfd without it */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define NO_WRITE_SEALS (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

const char segment_memory_create_call[] = "memfd_create()";
const char segment_memory_seal_call[] = "fcntl(F_ADD_SEALS)";
const char segment_memory_open_call[] = "open()";

int segment_memory_create(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

    if (fd == -1 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd;
}

int segment_memory_seal(int fd)
{
    return fcntl(fd, F_ADD_SEALS, SIZE_SEALS | F_SEAL_SEAL);
}

/* An older binary may not have set the seals that a segment has. */
int segment_memory_check(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals == -1)
        return -1;
    if ((seals & NO_WRITE_SEALS) != 0) {
        errno = EPERM;
        return -1;
    }
    if ((seals & (SIZE_SEALS | F_SEAL_SEAL)) == (SIZE_SEALS | F_SEAL_SEAL))
        return 0;
    return segment_memory_seal(fd);
}

/* Failing costs no more than the memory. */
void segment_memory_release(void *p, size_t n)
{
    int before = errno;

    madvise(p, n, MADV_REMOVE);
    errno = before;
}

/* Opens the memory for reading: a mapping of this descriptor cannot be made writable. */
int segment_memory_open_read_only(int fd)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes, maps and closes segments. The size of a segment is sealed before anybody else can have it:
 * memory that was cut short would have every process that reads it killed (SIGBUS), and a later
 * seal against writing would keep the next generation, or an upgraded master, from mapping it. */
#include "shm/segment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Linux 6.3; where vm.memfd_noexec is 2 there is no memfd without it */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define NO_WRITE_SEALS (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

size_t segment_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

size_t segment_pages(size_t size)
{
    size_t page = segment_page();

    return size > (size_t)PTRDIFF_MAX - page ? 0 : (size + page - 1) / page * page;
}

static int create_memory(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

    if (fd == -1 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd;
}

static int set_size(int fd, size_t size)
{
    struct rlimit limit;

    /* beyond this limit the kernel would not only refuse, but kill us (SIGXFSZ) */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size) {
        errno = EFBIG;
        return -1;
    }
    return ftruncate(fd, (off_t)size);
}

/* Maps all of the descriptor's memory, for this process alone. */
static const char *map_writable(struct segment *segment)
{
    void *base = mmap(NULL, segment->size, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);

    if (base == MAP_FAILED)
        return "mmap()";
    segment->base = base;
    return madvise(base, segment->size, MADV_DONTFORK) == 0 ? NULL : "madvise()";
}

const char *segment_create(struct segment *segment, const char *name, size_t size)
{
    assert(size > 0 && size % segment_page() == 0);
    *segment = (struct segment) { .fd = create_memory(name), .size = size };
    if (segment->fd == -1)
        return "memfd_create()";
    if (set_size(segment->fd, size) == -1)
        return "ftruncate()";
    if (fcntl(segment->fd, F_ADD_SEALS, SIZE_SEALS | F_SEAL_SEAL) == -1)
        return "fcntl(F_ADD_SEALS)";
    return map_writable(segment);
}

const char *segment_open(struct segment *segment, const struct segment *other)
{
    assert(other->fd != -1 && other->size > 0);
    *segment = (struct segment) {
        .fd = fcntl(other->fd, F_DUPFD_CLOEXEC, 0),
        .size = other->size,
    };
    return segment->fd == -1 ? "fcntl(F_DUPFD_CLOEXEC)" : map_writable(segment);
}

/* Whether the seals are those that a segment has, which an older binary may not have set. */
static int complete_seals(int fd)
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
    return fcntl(fd, F_ADD_SEALS, SIZE_SEALS | F_SEAL_SEAL);
}

const char *segment_adopt(struct segment *segment, int fd)
{
    struct stat st;
    const char *failed;

    assert(fd != -1);
    *segment = SEGMENT_CLOSED;
    if (complete_seals(fd) == -1)
        return "fcntl(F_ADD_SEALS)";
    if (fstat(fd, &st) == -1)
        return "fstat()";
    if (st.st_size <= 0 || segment_pages((size_t)st.st_size) != (size_t)st.st_size) {
        errno = EINVAL;
        return "fstat()";
    }
    *segment = (struct segment) { .fd = fd, .size = (size_t)st.st_size };
    failed = map_writable(segment);
    if (failed == NULL)
        return NULL;
    segment->fd = -1; /* stays the caller's */
    segment_close(segment);
    return failed;
}

/* Opens the memory for reading: a mapping of this descriptor cannot be made writable. */
static int open_read_only(int fd)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static const char *map_parts(
    struct segment *segment, const struct segment_part *parts, unsigned part_n)
{
    size_t page = segment_page();

    for (unsigned i = 0; i < part_n; i++) {
        const struct segment_part *part = &parts[i];

        assert(part->offset % page == 0 && part->size % page == 0);
        assert(part->offset <= segment->size && part->size <= segment->size - part->offset);
        if (part->size > 0 &&
            mmap((char *)segment->base + part->offset, part->size, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_FIXED, segment->fd, (off_t)part->offset) == MAP_FAILED)
            return "mmap()";
    }
    return NULL;
}

const char *segment_enter(
    struct segment *segment, const struct segment_part *parts, unsigned part_n)
{
    const char *failed;
    void *base;
    int fd;

    if (segment->fd == -1) /* inherited as it is */
        return NULL;
    segment->base = NULL;
    fd = open_read_only(segment->fd);
    if (fd == -1)
        return "open()";
    base = mmap(NULL, segment->size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (base == MAP_FAILED)
        return "mmap()";
    segment->base = base;
    failed = map_parts(segment, parts, part_n);
    close(segment->fd);
    segment->fd = -1;
    return failed;
}

int segment_set_inherited(const struct segment *segment, bool inherited)
{
    if (segment->base == NULL)
        return 0;
    return madvise(segment->base, segment->size, inherited ? MADV_DOFORK : MADV_DONTFORK);
}

int segment_create_private(struct segment *segment, size_t size)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    *segment = SEGMENT_CLOSED;
    if (base == MAP_FAILED)
        return -1;
    segment->base = base;
    segment->size = size;
    return 0;
}

void segment_forget(struct segment *segment)
{
    if (segment->fd == -1)
        return;
    close(segment->fd);
    *segment = SEGMENT_CLOSED; /* the mapping was not inherited */
}

void segment_close(struct segment *segment)
{
    if (segment->base != NULL)
        munmap(segment->base, segment->size);
    if (segment->fd != -1)
        close(segment->fd);
    *segment = SEGMENT_CLOSED;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes, maps and closes segments. Where the system has seals, the size of a segment is sealed
 * before another process gets the descriptor: truncated memory would kill every reader (SIGBUS). */
#include "shm/segment.h"

#include "os/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

size_t segment_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

size_t segment_pages(size_t size)
{
    size_t page = segment_page();

    return size > (size_t)PTRDIFF_MAX - page ? 0 : (size + page - 1) / page * page;
}

/* Beyond its limit the kernel would not only refuse, but kill us (SIGXFSZ). */
static bool is_file_size(size_t size)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == -1 || limit.rlim_cur >= size;
}

int segment_check(size_t size, size_t all)
{
    void *base = MAP_FAILED;

    assert(size > 0 && all >= size);
    if (is_file_size(size))
        base = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base != MAP_FAILED)
        return munmap(base, all);
    errno = EFBIG;
    return -1;
}

/* Maps the descriptor's whole memory, for this process alone. */
static const char *map_writable(struct segment *segment)
{
    void *base = mmap(NULL, segment->size, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);

    if (base == MAP_FAILED)
        return "mmap()";
    segment->base = base;
    return os_inherited_never(base, segment->size) == 0 ? NULL : os_inherited_call;
}

const char *segment_create(struct segment *segment, const char *name, size_t size)
{
    assert(size > 0 && size % segment_page() == 0);
    *segment = (struct segment) { .fd = os_segment_create(name), .size = size };
    if (segment->fd == -1)
        return os_segment_create_call;
    errno = EFBIG;
    if (!is_file_size(size) || ftruncate(segment->fd, (off_t)size) == -1)
        return "ftruncate()";
    if (os_segment_seal(segment->fd) == -1)
        return os_segment_seal_call;
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

const char *segment_adopt(struct segment *segment, int fd)
{
    struct stat st;
    const char *failed;

    assert(fd != -1);
    *segment = SEGMENT_CLOSED;
    if (os_segment_check(fd) == -1)
        return os_segment_seal_call;
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

const char *segment_enter(
    struct segment *segment, const struct segment_part *parts, unsigned part_n)
{
    void *base;
    int fd;

    if (segment->fd == -1) /* inherited as it is */
        return NULL;
    os_inherited_drop(segment->base, segment->size);
    segment->base = NULL;
    fd = os_segment_open_read_only(segment->fd);
    if (fd == -1)
        return os_segment_open_call;
    base = mmap(NULL, segment->size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (base != MAP_FAILED)
        segment->base = base;
    for (unsigned i = 0; i < part_n && base != MAP_FAILED; i++) {
        size_t at = parts[i].offset, size = parts[i].size;

        assert(at % segment_page() == 0 && size % segment_page() == 0);
        assert(at <= segment->size && size <= segment->size - at);
        if (size > 0)
            base = mmap((char *)segment->base + at, size, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_FIXED, segment->fd, (off_t)at);
    }
    close(segment->fd);
    segment->fd = -1;
    return base != MAP_FAILED ? NULL : "mmap()";
}

const char *segment_enter_whole(struct segment *segment)
{
    assert(segment->fd != -1);
    os_inherited_drop(segment->base, segment->size);
    segment->base = NULL;
    return map_writable(segment);
}

int segment_set_inherited(const struct segment *segment, bool inherited)
{
    if (segment->base == NULL)
        return 0;
    return inherited ? os_inherited_again(segment->base, segment->size)
                     : os_inherited_never(segment->base, segment->size);
}

int segment_create_private(struct segment *segment, size_t size)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    *segment = SEGMENT_CLOSED;
    if (base != MAP_FAILED)
        *segment = (struct segment) { .fd = -1, .base = base, .size = size };
    return base != MAP_FAILED ? 0 : -1;
}

void segment_forget(struct segment *segment)
{
    if (segment->fd == -1)
        return;
    if (segment->base != NULL)
        os_inherited_drop(segment->base, segment->size);
    close(segment->fd);
    *segment = SEGMENT_CLOSED;
}

void segment_close(struct segment *segment)
{
    if (segment->base != NULL)
        munmap(segment->base, segment->size);
    if (segment->fd != -1)
        close(segment->fd);
    *segment = SEGMENT_CLOSED;
}

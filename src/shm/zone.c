/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens zones, passes them to the next configuration or process, and closes them. A zone is open
 * exactly while it has a mapping and a descriptor of its own; the content of its memory is used
 * only after it was compared with the declaration. */
#include "shm/zone.h"

#include <assert.h>
#include <bsd/string.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Linux 6.3; where vm.memfd_noexec is 2 there is no memfd without it */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

static_assert(sizeof(struct zone_header) == CACHE_LINE, "the layout is versioned");

void zones_init(struct zones *zones)
{
    STAILQ_INIT(zones);
}

struct zone *zones_find(const struct zones *zones, const char *name)
{
    struct zone *zone;

    STAILQ_FOREACH (zone, zones, link)
        if (strcmp(zone->name, name) == 0)
            return zone;
    return NULL;
}

void *zone_memory(const struct zone *zone)
{
    return zone->base == NULL ? NULL : zone->base + 1;
}

struct zone *zone_declare(struct zones *zones, struct arena *arena, const struct zone_kind *kind,
    const char *name, uint32_t version, const void *shape)
{
    size_t name_n = strlen(name), size = kind->size(shape);
    struct zone *zone;

    assert(kind->init != NULL && kind->is != NULL);
    assert(strlen(kind->name) < sizeof(((struct zone_header *)NULL)->kind));
    errno = 0;
    if (name_n == 0)
        errno = EINVAL;
    else if (name_n > ZONE_NAME_MAX)
        errno = ENAMETOOLONG;
    else if (zones_find(zones, name) != NULL)
        errno = EEXIST;
    else if (size == 0 || size > (size_t)PTRDIFF_MAX - sizeof(struct zone_header))
        errno = EOVERFLOW;
    if (errno != 0)
        return NULL;

    zone = arena_alloc(arena, sizeof(*zone));
    if (zone == NULL || (zone->name = arena_strdup(arena, name)) == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    zone->kind = kind;
    zone->shape = shape;
    zone->version = version;
    zone->size = sizeof(struct zone_header) + size;
    zone->fd = -1;
    STAILQ_INSERT_TAIL(zones, zone, link);
    return zone;
}

/* Whether the old zone's memory is what the new zone's would be. */
static bool zone_fits(const struct zone *zone, const struct zone *old)
{
    const struct zone_header *header = old->base;

    return header != NULL && header->magic == ZONE_MAGIC && header->version == zone->version &&
           header->size == zone->size && strcmp(header->name, zone->name) == 0 &&
           strcmp(header->kind, zone->kind->name) == 0 && zone->kind->is(header + 1, zone->shape);
}

static int create_memory(const struct zone *zone)
{
    char name[sizeof("forkbeard:") + ZONE_NAME_MAX];
    int fd;

    snprintf(name, sizeof(name), "forkbeard:%s", zone->name);
    fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    if (fd == -1 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd;
}

static int set_size(const struct zone *zone)
{
    struct rlimit limit;

    /* beyond this limit the kernel would not only refuse, but kill us (SIGXFSZ) */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < zone->size) {
        errno = EFBIG;
        return -1;
    }
    return ftruncate(zone->fd, (off_t)zone->size);
}

/* Fixes the size: a worker that cut the memory short would have every process that reads it killed
 * (SIGBUS), and a seal of its own against writing would keep the next generation from mapping
 * it. */
static int seal_size(const struct zone *zone)
{
    return fcntl(zone->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

static int init_memory(struct zone *zone)
{
    struct zone_header *header = zone->base;

    assert(header->magic == 0); /* new memory */
    if (zone->kind->init(header + 1, zone->shape) == -1)
        return -1;
    header->version = zone->version;
    header->size = zone->size;
    strlcpy(header->kind, zone->kind->name, sizeof(header->kind));
    strlcpy(header->name, zone->name, sizeof(header->name));
    header->magic = ZONE_MAGIC;
    return 0;
}

/* Opens a zone, with the memory of `old` unless that is NULL. Returns NULL, or the name of the call
 * that has failed, with errno. */
static const char *open_zone(struct zone *zone, const struct zone *old)
{
    void *base;

    assert(zone->base == NULL && zone->fd == -1 && zone->kind != NULL);
    assert(zone->size > sizeof(struct zone_header));
    zone->fd = old != NULL ? fcntl(old->fd, F_DUPFD_CLOEXEC, 0) : create_memory(zone);
    if (zone->fd == -1)
        return old != NULL ? "fcntl(F_DUPFD_CLOEXEC)" : "memfd_create()";
    if (old == NULL && set_size(zone) == -1)
        return "ftruncate()";
    if (old == NULL && seal_size(zone) == -1)
        return "fcntl(F_ADD_SEALS)";
    base = mmap(NULL, zone->size, PROT_READ | PROT_WRITE, MAP_SHARED, zone->fd, 0);
    if (base == MAP_FAILED)
        return "mmap()";
    zone->base = base;
    if (old == NULL && init_memory(zone) == -1)
        return "its initialisation";
    return NULL;
}

int zones_open(struct zones *zones, const struct zones *old, struct log *log)
{
    struct zone *zone;

    STAILQ_FOREACH (zone, zones, link) {
        const struct zone *before = old == NULL ? NULL : zones_find(old, zone->name);
        bool fitting = before != NULL && zone_fits(zone, before);
        const char *failed = open_zone(zone, fitting ? before : NULL);

        if (failed != NULL) {
            log_write(log, LEVEL_EMERG, errno,
                "zone \"%s\" of %zu bytes could not be opened: %s failed", zone->name, zone->size,
                failed);
            zones_close(zones);
            return -1;
        }
        if (before != NULL && !fitting)
            log_write(log, LEVEL_NOTICE, 0, "zone \"%s\" begins empty because its layout changed",
                zone->name);
    }
    return 0;
}

static bool is_zone(const struct zone *zone)
{
    const struct zone_header *header = zone->base;

    return header->magic == ZONE_MAGIC && header->size == zone->size &&
           memchr(header->name, '\0', sizeof(header->name)) != NULL &&
           memchr(header->kind, '\0', sizeof(header->kind)) != NULL;
}

int zones_adopt(struct zones *zones, struct arena *arena, int fd)
{
    struct zone *zone = arena_alloc(arena, sizeof(*zone));
    struct stat st;
    void *base;

    assert(fd != -1);
    if (zone == NULL || fstat(fd, &st) == -1)
        return -1;
    if (st.st_size < (off_t)sizeof(struct zone_header)) {
        errno = EINVAL;
        return -1;
    }
    base = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return -1;
    *zone = (struct zone) { .base = base, .size = (size_t)st.st_size, .fd = fd };
    if (!is_zone(zone)) {
        munmap(base, zone->size);
        errno = EINVAL;
        return -1;
    }
    zone->name = zone->base->name;
    zone->version = zone->base->version;
    STAILQ_INSERT_TAIL(zones, zone, link);
    return 0;
}

static void close_zone(struct zone *zone)
{
    assert(zone->base == NULL || zone->fd != -1);
    if (zone->base != NULL)
        munmap(zone->base, zone->size);
    if (zone->fd != -1)
        close(zone->fd);
    zone->base = NULL;
    zone->fd = -1;
}

void zones_close(struct zones *zones)
{
    struct zone *zone;

    STAILQ_FOREACH (zone, zones, link)
        close_zone(zone);
}

void zones_slot_released(struct zones *zones, struct slot_id id)
{
    struct zone *zone;

    assert(id.slot < SLOT_HALVES * SLOT_MAX);
    STAILQ_FOREACH (zone, zones, link)
        if (zone->base != NULL && zone->kind != NULL && zone->kind->slot_released != NULL)
            zone->kind->slot_released(zone_memory(zone), zone->shape, id);
}

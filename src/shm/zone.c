/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens zones, passes them to the next configuration or process, and closes them. A zone is open
 * exactly while it has a mapping. This process describes zones in private memory; of memory from
 * another process the header is read once, and compared with the kernel's numbers. */
#include "shm/zone.h"

#include <assert.h>
#include <bsd/string.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    return zone->segment.base == NULL ? NULL : (char *)zone->segment.base + segment_page();
}

/* Bytes of a zone's memory with its header; 0 if there can be none. */
static size_t size_of(const struct zone_kind *kind, const void *shape)
{
    size_t size = segment_pages(kind->size(shape));

    return size == 0 || size > (size_t)PTRDIFF_MAX - segment_page() ? 0 : segment_page() + size;
}

static struct zone *add_zone(
    struct zones *zones, struct arena *arena, const char *name, const char *kind_name)
{
    struct zone *zone = arena_alloc(arena, sizeof(*zone));

    if (zone != NULL)
        *zone = (struct zone) { .name = arena_strdup(arena, name), .segment = SEGMENT_CLOSED };
    if (zone == NULL || zone->name == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    strlcpy(zone->kind_name, kind_name, sizeof(zone->kind_name));
    STAILQ_INSERT_TAIL(zones, zone, link);
    return zone;
}

/* Returns the bytes of all zones together; SIZE_MAX on an overflow. */
static size_t size_with(const struct zones *zones, size_t size)
{
    const struct zone *zone;

    STAILQ_FOREACH (zone, zones, link)
        size = size > SIZE_MAX - zone->size ? SIZE_MAX : size + zone->size;
    return size;
}

struct zone *zone_declare(struct zones *zones, struct arena *arena, const struct zone_kind *kind,
    const char *name, uint32_t version, const void *shape)
{
    size_t name_n = strlen(name), size = size_of(kind, shape);
    struct zone *zone;

    assert(kind->init != NULL && kind->is != NULL);
    assert(strlen(kind->name) <= ZONE_KIND_MAX);
    errno = 0;
    if (name_n == 0)
        errno = EINVAL;
    else if (name_n > ZONE_NAME_MAX)
        errno = ENAMETOOLONG;
    else if (zones_find(zones, name) != NULL)
        errno = EEXIST;
    else if (size == 0)
        errno = EOVERFLOW;
    else
        segment_check(size, size_with(zones, size));
    if (errno != 0 || (zone = add_zone(zones, arena, name, kind->name)) == NULL)
        return NULL;
    zone->kind = kind;
    zone->shape = shape;
    zone->version = version;
    zone->size = size;
    return zone;
}

/* Returns why the new zone cannot have the old zone's memory, for the log; NULL if possible. */
static const char *compare_zones(const struct zone *zone, const struct zone *old)
{
    const struct zone_kind *kind = zone->kind;

    if (old->segment.base == NULL || old->version != zone->version ||
        strcmp(old->kind_name, zone->kind_name) != 0)
        return "the zone's layout changed";
    if (kind->fits != NULL ? kind->fits(zone_memory(old), old->size - segment_page(), zone->shape)
                           : old->size == zone->size && kind->is(zone_memory(old), zone->shape))
        return NULL;
    if (old->kind != NULL && !old->kind->is(zone_memory(old), old->shape))
        return "the zone's memory was damaged";
    return "the zone's layout changed";
}

static int init_memory(struct zone *zone)
{
    struct zone_header *header = zone->segment.base;

    assert(header->magic == 0); /* new memory */
    if (zone->kind->init(zone_memory(zone), zone->shape) == -1)
        return -1;
    header->version = zone->version;
    header->size = zone->size;
    strlcpy(header->kind, zone->kind_name, sizeof(header->kind));
    strlcpy(header->name, zone->name, sizeof(header->name));
    header->magic = ZONE_MAGIC;
    return 0;
}

/* Opens a zone, with `old` memory unless NULL; NULL, or the failed call's name, with errno. */
static const char *open_zone(struct zone *zone, const struct zone *old)
{
    char name[sizeof("forkbeard:") + ZONE_NAME_MAX];
    const char *failed;

    assert(zone->segment.base == NULL && zone->segment.fd == -1 && zone->kind != NULL);
    assert(zone->size > sizeof(struct zone_header));
    if (old != NULL) {
        zone->size = old->size;
        return segment_open(&zone->segment, &old->segment);
    }
    snprintf(name, sizeof(name), "forkbeard:%s", zone->name);
    failed = segment_create(&zone->segment, name, zone->size);
    if (failed == NULL && init_memory(zone) == -1)
        failed = "its initialisation";
    return failed;
}

int zones_open(struct zones *zones, const struct zones *old, struct log *log)
{
    struct zone *zone;

    STAILQ_FOREACH (zone, zones, link) {
        const struct zone *before = old == NULL ? NULL : zones_find(old, zone->name);
        const char *why = before == NULL ? NULL : compare_zones(zone, before);
        const char *failed = open_zone(zone, why == NULL ? before : NULL);

        if (failed != NULL) {
            log_write(log, LEVEL_EMERG, errno,
                "zone \"%s\" of %zu bytes could not be opened: %s failed", zone->name, zone->size,
                failed);
            zones_close(zones);
            return -1;
        }
        if (why != NULL)
            log_tell(log, LEVEL_WARN, "zone \"%s\" begins empty because %s", zone->name, why);
    }
    return 0;
}

/* Reads a zone header from another process; returns whether the header is valid. */
static bool read_header(int fd, struct zone_header *header)
{
    return pread(fd, header, sizeof(*header), 0) == (ssize_t)sizeof(*header) &&
           (header->magic == ZONE_MAGIC || header->magic == ZONE_MAGIC_BEFORE) &&
           memchr(header->name, '\0', sizeof(header->name)) != NULL &&
           memchr(header->kind, '\0', sizeof(header->kind)) != NULL;
}

int zones_adopt(struct zones *zones, struct arena *arena, int fd)
{
    struct zone_header header;
    struct segment segment;
    struct zone *zone = NULL;

    assert(fd != -1);
    if (!read_header(fd, &header) || zones_find(zones, header.name) != NULL) {
        errno = EINVAL;
        return -1;
    }
    if (header.magic == ZONE_MAGIC_BEFORE) { /* an unknown layout: notes the name */
        if (add_zone(zones, arena, header.name, header.kind) == NULL)
            return -1;
        close(fd);
        return 0;
    }
    if (segment_adopt(&segment, fd) != NULL)
        return -1;
    if (header.size == segment.size && segment.size > segment_page())
        zone = add_zone(zones, arena, header.name, header.kind);
    if (zone == NULL) {
        segment.fd = -1; /* stays the caller's */
        segment_close(&segment);
        errno = EINVAL;
        return -1;
    }
    zone->version = header.version;
    zone->size = segment.size;
    zone->segment = segment;
    return 0;
}

void zones_close(struct zones *zones)
{
    struct zone *zone;

    STAILQ_FOREACH (zone, zones, link)
        segment_close(&zone->segment);
}

static const char *enter_zone(struct zone *zone, struct slot_id id)
{
    size_t at = segment_page() + segment_pages(zone->kind->header);
    struct segment_part part = { .offset = at, .size = zone->size - at };

    if (zone->kind->writable != NULL) {
        part = zone->kind->writable(zone->shape, id.slot);
        part.offset += segment_page(); /* the header's */
    }
    return segment_enter(&zone->segment, &part, 1);
}

static int log_unmapped(const struct zone *zone, const char *failed, struct log *log)
{
    log_write(log, LEVEL_EMERG, errno, "zone \"%s\" could not be mapped in a worker: %s failed",
        zone->name, failed);
    return -1;
}

int zones_enter(struct zones *zones, struct slot_id id, struct log *log)
{
    struct zone *zone;

    assert(slot_id_is_valid(id));
    STAILQ_FOREACH (zone, zones, link) {
        const char *failed = zone->segment.fd == -1 ? NULL : enter_zone(zone, id);

        if (failed != NULL)
            return log_unmapped(zone, failed, log);
    }
    return 0;
}

int zones_enter_helper(struct zones *zones, struct log *log)
{
    struct zone *zone;

    STAILQ_FOREACH (zone, zones, link) {
        bool is_helpers = zone->kind != NULL && zone->kind->is_helpers;
        const char *failed = is_helpers ? segment_enter_whole(&zone->segment) : NULL;

        if (failed != NULL)
            return log_unmapped(zone, failed, log);
        if (!is_helpers)
            segment_forget(&zone->segment);
    }
    return 0;
}

int zones_set_inherited(const struct zones *zones, bool inherited)
{
    const struct zone *zone;
    int status = 0;

    STAILQ_FOREACH (zone, zones, link)
        if (segment_set_inherited(&zone->segment, inherited) == -1)
            status = -1;
    return status;
}

void zones_forget(struct zones *zones)
{
    struct zone *zone;

    STAILQ_FOREACH (zone, zones, link)
        segment_forget(&zone->segment);
}

void zones_slot_acquired(struct zones *zones, struct slot_id id)
{
    struct zone *zone;

    assert(slot_id_is_valid(id));
    STAILQ_FOREACH (zone, zones, link)
        if (zone->segment.base != NULL && zone->kind != NULL && zone->kind->slot_acquired != NULL)
            zone->kind->slot_acquired(zone_memory(zone), zone->shape, id);
}

void zones_slot_released(struct zones *zones, struct slot_id id)
{
    struct zone *zone;

    assert(id.slot < SLOT_HALVES * SLOT_MAX);
    STAILQ_FOREACH (zone, zones, link)
        if (zone->segment.base != NULL && zone->kind != NULL && zone->kind->slot_released != NULL)
            zone->kind->slot_released(zone_memory(zone), zone->shape, id);
}

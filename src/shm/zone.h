/* SPDX-License-Identifier: BSD-2-Clause */
/* Zones: named regions that all workers share. The configuration declares them, which makes only
 * the struct; the master opens them before it forks. A zone of the next configuration that has the
 * same name, version, kind and shape takes the memory of the old one over.
 *
 * Each struct has a descriptor and a mapping of its own, also of memory that was taken over: it can
 * be closed whatever becomes of the other, and the memory goes with its last zone. */
#pragma once

#include "base/arena.h"
#include "base/log.h"
#include "shm/shared.h"

#include <bsd/sys/queue.h>
#include <stdalign.h>

#define FB_ZONE_NAME_MAX 63
#define FB_ZONE_MAGIC 0x6662657au

/* A use of zones' memory. */
struct fb_zone_kind {
    const char *name; /* up to 15 bytes */
    /* Returns the bytes that a shape needs; 0 for an impossible shape. */
    size_t (*size)(const void *shape);
    /* Makes memory that is all zero ready, touching no more of it than it must; -1 with errno. */
    int (*init)(void *memory, const void *shape);
    /* Whether the memory, of a zone of this kind and size, is of this shape. */
    bool (*is)(const void *memory, const void *shape);
    /* The master: the worker of a slot has died. Called twice for memory that two zones share. Or
     * NULL. */
    void (*slot_released)(void *memory, uint32_t slot);
};

/* The beginning of a zone's memory. */
struct fb_zone_header {
    alignas(FB_CACHE_LINE) uint32_t magic;
    uint32_t version; /* the declared one */
    uint64_t size;    /* bytes of the memory, with this header */
    char kind[16];
    char name[FB_ZONE_NAME_MAX + 1];
};

struct fb_zone {
    STAILQ_ENTRY(fb_zone) link;
    const struct fb_zone_kind *kind;
    const void *shape;
    const char *name;
    uint32_t version;            /* the version of the layout that the zone's user gives it */
    size_t size;                 /* with the header */
    int fd;                      /* -1 unless open */
    struct fb_zone_header *base; /* NULL unless open */
};

STAILQ_HEAD(fb_zones, fb_zone);

void fb_zones_init(struct fb_zones *zones);
struct fb_zone *fb_zones_find(const struct fb_zones *zones, const char *name);

/* Adds a zone, closed. The shape is the caller's, and must last as long as the arena; the name is
 * copied. NULL with errno: EINVAL for an empty name, ENAMETOOLONG, EEXIST, EOVERFLOW for a shape
 * that cannot be, ENOMEM. */
struct fb_zone *fb_zone_declare(struct fb_zones *zones, struct fb_arena *arena,
    const struct fb_zone_kind *kind, const char *name, uint32_t version, const void *shape);

/* Adds an open zone, from memory that another process has handed us, and which may be anything.
 * Takes the descriptor; -1 with errno if it is no zone, and then the descriptor stays the
 * caller's. */
int fb_zones_adopt(struct fb_zones *zones, struct fb_arena *arena, int fd);

/* Opens every zone, with the memory of the zone of `old` (open, or NULL) that fits; -1 after an
 * emerg line, with every zone closed. */
int fb_zones_open(struct fb_zones *zones, const struct fb_zones *old, struct fb_log *log);
/* Closes the open zones. */
void fb_zones_close(struct fb_zones *zones);
/* The master, when the worker of a slot has died: tells the kinds of the open zones. */
void fb_zones_bury(struct fb_zones *zones, uint32_t slot);

/* Returns the kind's part of the memory, aligned to FB_CACHE_LINE; NULL unless open. */
void *fb_zone_memory(const struct fb_zone *zone);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Zones: named regions that all workers share. The configuration declares them, which makes only the
 * struct; the master opens them before it forks. A zone of the next configuration that has the same
 * name, version, kind and shape takes the memory of the old one over.
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

/* What a zone's memory is used as. */
struct fb_zone_kind {
    const char *name; /* up to 15 bytes */
    /* The bytes that a shape needs; 0 when there cannot be such a shape. */
    size_t (*size)(const void *shape);
    /* Makes memory that is all zero ready, touching no more of it than it must; -1 with errno. */
    int (*init)(void *memory, const void *shape);
    /* The memory of a zone of this kind and size is of this shape. */
    bool (*is)(const void *memory, const void *shape);
    /* The master: the worker of a slot has died. It may be told twice of one memory. Or NULL. */
    void (*bury)(void *memory, uint32_t slot);
};

/* What the memory begins with. */
struct fb_zone_header {
    alignas(FB_CACHE_LINE) uint32_t magic;
    uint32_t version; /* the one that was declared */
    uint64_t size;    /* of all, with this */
    char kind[16];
    char name[FB_ZONE_NAME_MAX + 1];
};

struct fb_zone {
    STAILQ_ENTRY(fb_zone) link;
    const struct fb_zone_kind *kind;
    const void *shape;
    const char *name;
    uint32_t version;            /* of the layout that the zone's user gives it */
    size_t size;                 /* with the header */
    int fd;                      /* -1 unless open */
    struct fb_zone_header *base; /* NULL unless open */
};

STAILQ_HEAD(fb_zones, fb_zone);

void fb_zones_init(struct fb_zones *zones);
struct fb_zone *fb_zones_find(const struct fb_zones *zones, const char *name);

/* Adds a zone, closed. The shape is the caller's, and must last as long as the arena; the name is
 * copied. NULL with errno: EINVAL for an empty name, ENAMETOOLONG, EEXIST, EOVERFLOW for a shape that
 * cannot be, ENOMEM. */
struct fb_zone *fb_zone_declare(struct fb_zones *zones, struct fb_arena *arena,
    const struct fb_zone_kind *kind, const char *name, uint32_t version, const void *shape);

/* Adds a zone that is open, from memory that another process has handed us: which may be anything.
 * Takes the descriptor; -1 with errno, and without it, if it is no zone. */
int fb_zones_adopt(struct fb_zones *zones, struct fb_arena *arena, int fd);

/* Opens all, taking over what fits from `old`, which is open (or NULL); -1 after an emerg line, with
 * all closed. */
int fb_zones_open(struct fb_zones *zones, const struct fb_zones *old, struct fb_log *log);
/* Closes those that are open. */
void fb_zones_close(struct fb_zones *zones);
/* The master, when the worker of a slot has died: tells those that are open. */
void fb_zones_bury(struct fb_zones *zones, uint32_t slot);

/* What the kind uses, aligned to FB_CACHE_LINE; NULL unless open. */
void *fb_zone_memory(const struct fb_zone *zone);

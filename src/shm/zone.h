/* SPDX-License-Identifier: BSD-2-Clause */
/* Zones: named regions, shared by all workers. The configuration declares a zone, and makes the
 * struct only; the master opens zones before the fork. A zone of the next configuration with equal
 * name, version, kind and shape takes the memory of the old zone over. Each struct has a private
 * descriptor and mapping, also of memory taken over: closing a zone does not affect a second zone,
 * and the memory goes with the last zone. A worker keeps no descriptor, and maps only the parts
 * writable that the zone's kind allows. */
#pragma once

#include "base/arena.h"
#include "base/log.h"
#include "shm/shared.h"

#include <bsd/sys/queue.h>
#include <stdalign.h>

#define ZONE_NAME_MAX 63
#define ZONE_KIND_MAX 15
#define ZONE_MAGIC 0x6662657bu
#define ZONE_MAGIC_BEFORE 0x6662657au /* the earlier layout, where workers wrote all */

/* A use of zones' memory. */
struct zone_kind {
    const char *name; /* up to ZONE_KIND_MAX bytes */
    /* Returns the bytes for a shape; 0 for an impossible shape. */
    size_t (*size)(const void *shape);
    /* Prepares zeroed memory, touching as little as possible; -1 with errno. */
    int (*init)(void *memory, const void *shape);
    /* Whether memory from a zone of equal kind and size has the shape, and is whole. */
    bool (*is)(const void *memory, const void *shape);
    /* Whether memory of any size, made for a different shape, can be used unchanged. NULL: only
     * memory of equal size. */
    bool (*fits)(const void *memory, size_t size, const void *shape);
    size_t header; /* bytes at the start, in pages never written by workers */
    /* Returns the whole pages that the slot's worker may write. NULL: all behind `header`. */
    struct segment_part (*writable)(const void *shape, uint32_t slot);
    bool is_helpers; /* helpers map the whole memory writable, and keep the descriptor */
    /* The master: a worker is about to have the slot. Or NULL. */
    void (*slot_acquired)(void *memory, const void *shape, struct slot_id id);
    /* The master: this incarnation has died. Called twice for memory of two zones. Or NULL. */
    void (*slot_released)(void *memory, const void *shape, struct slot_id id);
};

/* The first page of a zone, written by masters, and read by another binary's master only. */
struct zone_header {
    alignas(CACHE_LINE) uint32_t magic;
    uint32_t version; /* the declared one */
    uint64_t size;    /* bytes of the memory, with this page */
    char kind[ZONE_KIND_MAX + 1];
    char name[ZONE_NAME_MAX + 1];
};

struct zone {
    STAILQ_ENTRY(zone) link;
    const struct zone_kind *kind; /* NULL: adopted */
    const void *shape;
    const char *name;
    char kind_name[ZONE_KIND_MAX + 1];
    uint32_t version;       /* layout version, by the zone's user */
    size_t size;            /* whole pages, with the header's; 0: adopted, and of no use */
    struct segment segment; /* the memory, where it is open */
};

STAILQ_HEAD(zones, zone);
void zones_init(struct zones *zones);
struct zone *zones_find(const struct zones *zones, const char *name);
/* Adds a zone, closed. The shape is the caller's, and must last as long as the arena; the name is
 * copied. NULL with errno: EINVAL for an empty name, ENAMETOOLONG, EEXIST, EOVERFLOW for a shape
 * that cannot be, EFBIG for one that no process could open beside the other zones, ENOMEM. */
struct zone *zone_declare(struct zones *zones, struct arena *arena, const struct zone_kind *kind,
    const char *name, uint32_t version, const void *shape);
/* Adds an open zone with untrusted memory of another process, and takes ownership of fd; -1 with
 * errno for anything but a zone, and fd stays the caller's. */
int zones_adopt(struct zones *zones, struct arena *arena, int fd);
/* Opens every zone, with the memory of a fitting zone of `old` (open, or NULL); -1 after an emerg
 * line, with every zone closed. */
int zones_open(struct zones *zones, const struct zones *old, struct log *log);
/* Closes the open zones. */
void zones_close(struct zones *zones);
/* A forked child: maps the zones for the slot's worker, closes descriptors; -1 after an emerg
 * line. */
int zones_enter(struct zones *zones, struct slot_id id, struct log *log);
/* A helper process: maps the helpers' zones, and forgets the rest. */
int zones_enter_helper(struct zones *zones, struct log *log);
/* Calls segment_set_inherited() for each open zone. */
int zones_set_inherited(const struct zones *zones, bool inherited);
/* A forked child: closes the descriptors of unused zones. */
void zones_forget(struct zones *zones);
/* Called by the master before it forks a slot's worker. */
void zones_slot_acquired(struct zones *zones, struct slot_id id);
/* Called by the master when a slot's worker has died. Serial 0: of another master, unknown. */
void zones_slot_released(struct zones *zones, struct slot_id id);
/* Returns the kind's part of the memory, which begins a page; NULL unless open. */
void *zone_memory(const struct zone *zone);

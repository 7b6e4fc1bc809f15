/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of zones as handed over by another process, with damage in the bytes read: a byte for
 * the seals, a byte for the size, then edits of an offset (two bytes) and a byte. Where the
 * first byte is no small number, the memory is kept from input to input: metrics or a map, by
 * the second byte. */
#include "fuzz/input.h"

#include "base/compiler.h"
#include "shm/map_private.h"
#include "shm/metrics.h"
#include "shm/zone.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EDIT 3    /* bytes of an edit */
#define EDITS 64  /* at most */
#define SLOTS 3u  /* slots of the second half, with edited rows, too */
#define HEADER 96 /* bytes of the header of metrics within reach of edits */
#define FRESH 6   /* first bytes below it: of new memory */
#define KEYS 8
#define PARTS_MOST 48
#define OFTEN 3 /* parts that are read when the memory was adopted have so many times the chance */
#define ROWS 4  /* slots of the zone's half with a worker so far */

static const uint8_t kinds[] = { SHM_COUNTER, SHM_GAUGE };
static const struct shm_metrics_shape shape = { countof(kinds), kinds };

static const int seals[] = {
    0,
    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
    F_SEAL_SHRINK | F_SEAL_GROW,
    F_SEAL_SEAL,
    F_SEAL_WRITE,
    F_SEAL_SHRINK | F_SEAL_SEAL,
};

static const struct shm_map_shape map_shape = { 6, 8, 8, 0 };

/* A part of the memory read by the daemon. */
struct part {
    size_t at, n;
};

/* A zone of each kind, in memory never unmapped. */
struct scene {
    const struct zone_kind *kind;
    const void *shape;
    int fd;
    char *view, *whole; /* the memory, and the content before the damage */
    size_t size;
    struct part parts[PARTS_MOST]; /* edits reach these */
    unsigned part_n;
};

/* Replaces the C library's: a wait for a forged holder is pointless. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)time;
    (void)left;
    return 0;
}

/* Writes the beginning of a zone of metrics. */
static void write_valid(int fd, size_t size)
{
    struct zone_header header = {
        .magic = ZONE_MAGIC,
        .version = 1,
        .size = size,
        .kind = "metrics",
        .name = "n",
    };
    size_t page = segment_page();
    void *metrics = aligned_alloc(page, page);

    require(metrics != NULL, "no memory");
    memset(metrics, 0, page);
    shm_metrics_kind.init(metrics, &shape);
    require(pwrite(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header), "header");
    require(pwrite(fd, metrics, HEADER, (off_t)page) == HEADER, "metrics");
    free(metrics);
}

/* The place of an edit: in the header, in that of the metrics, or in a row. */
static off_t place_of(const uint8_t *edit)
{
    size_t page = segment_page(), at = (size_t)edit[0] << 8 | edit[1];

    if (at < sizeof(struct zone_header))
        return (off_t)at;
    if (at < 0x1000)
        return (off_t)(page + at % HEADER);
    return (off_t)(2 * page + (at >> 4) % 6 * page + at % 16);
}

static int make_memory(const uint8_t *data, size_t size, size_t whole)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    size_t n = whole;

    require(fd != -1, "memfd_create");
    if (data[1] != 0)
        n = data[1] % 16 * segment_page() + (data[1] >> 4);
    require(ftruncate(fd, (off_t)whole) == 0, "ftruncate");
    write_valid(fd, whole);
    for (size_t i = 0; i < EDITS && (i + 1) * EDIT + 2 <= size; i++)
        require(pwrite(fd, &data[2 + i * EDIT + 2], 1, place_of(&data[2 + i * EDIT])) == 1, "edit");
    require(ftruncate(fd, (off_t)n) == 0, "ftruncate");
    fcntl(fd, F_ADD_SEALS, seals[data[0] % countof(seals)]);
    return fd;
}

/* Does what masters and workers do. */
static void use_metrics(struct zones *zones, struct zone *zone)
{
    struct shm_metrics *metrics = zone_memory(zone);

    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        struct slot_id id = { .slot = SLOT_MAX + slot, .serial = 1 };

        zones_slot_acquired(zones, id);
        shm_metric_add(&shm_metrics_row(metrics, &shape, id.slot)[0], 1);
        shm_metrics_total(metrics, &shape, 0);
        shm_metrics_total(metrics, &shape, 1);
        zones_slot_released(zones, id);
        zones_slot_released(zones, (struct slot_id) { .slot = slot });
    }
    for (uint32_t i = 0; i < shape.n; i++)
        shm_metrics_total(metrics, &shape, i);
}

static void use_map(struct zones *zones, struct zone *zone)
{
    struct shm_map_item item = { .room = 0 };
    struct shm_map map;

    zones_slot_acquired(zones, (struct slot_id) { 1, 5 });
    shm_map_open(&map, zone_memory(zone), &map_shape, (struct slot_id) { 1, 5 });
    for (uint8_t key = 0; key < KEYS; key++) {
        map.table.locker.patience = 1; /* a merely forged holder is soon given up */
        map.table.locker.impatient_at = map.table.locker.acquired;
        shm_map_get(&map, &key, 1, 1, &item);
        require(item.n <= map_shape.value_max, "a value has its size");
        if (key % 2 == 0)
            shm_map_add(&map, &key, 1, 1, 1, NULL);
        else
            shm_map_delete(&map, &key, 1, 1);
    }
    shm_map_pool_suspect(&map, SHM_MAP_SUSPECT);
    shm_map_sweep(&map, 1);
    require(shm_map_count(&map) <= map.table.entry_n, "a count is no more than fit");
    zones_slot_released(zones, (struct slot_id) { 1, 5 });
}

static void add_part(struct scene *scene, unsigned chance, const void *begin, size_t n)
{
    require(scene->part_n + chance <= PARTS_MOST, "too many parts");
    for (; chance > 0; chance--)
        scene->parts[scene->part_n++] =
            (struct part) { .at = (size_t)((const char *)begin - scene->view), .n = n };
}

static void fill_map(struct scene *scene, void *memory)
{
    struct shm_map map;

    shm_map_kind.init(memory, &map_shape);
    shm_map_open(&map, memory, &map_shape, (struct slot_id) { 1, 1 });
    for (uint8_t key = 0; key < map_shape.capacity; key++)
        shm_map_set(&map, &key, 1, 1, &(int64_t) { key }, sizeof(int64_t), key % 2, NULL);
    add_part(scene, 1, map.header, offsetof(struct shm_map_header, seed) + sizeof(map.seed));
    add_part(scene, OFTEN, map.pool, offsetof(struct shm_map_pool, used) + sizeof(map.pool->used));
    add_part(scene, OFTEN, map.shards, offsetof(struct shm_map_shard, kept_for) + sizeof(uint32_t));
    add_part(scene, OFTEN, map.owners, map.touched_most);
    add_part(scene, OFTEN, shm_map_buckets(&map, 0),
        sizeof(uint32_t) * map.table.shard_n * map.table.bucket_n);
    for (uint32_t i = 1; i <= map.touched_most; i++)
        if (i != map.shards->spare) /* the header, and a key of one byte */
            add_part(scene, OFTEN, shm_map_entry_at(&map, i), sizeof(struct shm_map_entry) + 1);
}

/* Some slots have had workers: rows of used slots are read. */
static void fill_metrics(struct scene *scene, void *memory)
{
    size_t page = segment_page(), rows = 2 * page;

    shm_metrics_kind.init(memory, &shape);
    for (uint32_t slot = 0; slot < ROWS; slot++)
        shm_metrics_kind.slot_acquired(memory, &shape, (struct slot_id) { slot, 1 });
    add_part(scene, 1, memory, 3 * sizeof(uint32_t)); /* what it is */
    add_part(scene, OFTEN, (char *)memory + 16, 12);  /* the state of both halves, and the slots */
    add_part(scene, OFTEN, (char *)memory + 32, 12);
    add_part(scene, 1, (char *)memory + 48, countof(kinds));
    add_part(scene, OFTEN, scene->view + rows,
        sizeof(shm_row) * countof(kinds)); /* the row of the dead */
    for (uint32_t slot = 0; slot < ROWS; slot++)
        add_part(
            scene, OFTEN, shm_metrics_row(memory, &shape, slot), sizeof(shm_row) * countof(kinds));
}

/* Bytes to damage, or to read: half the bytes of metrics. */
static size_t changed_size(const struct scene *scene)
{
    return scene->kind == &shm_map_kind ? scene->size : (4 + ROWS) * segment_page();
}

static void build_scene(struct scene *scene, const struct zone_kind *kind)
{
    size_t page = segment_page();
    struct zone_header *header;
    struct segment segment;

    scene->kind = kind;
    scene->shape = kind == &shm_map_kind ? (const void *)&map_shape : &shape;
    scene->size = page + segment_pages(kind->size(scene->shape));
    require(segment_create(&segment, "fuzz", scene->size) == NULL, "no segment");
    scene->fd = segment.fd;
    header = segment.base;
    scene->view = segment.base;
    /* a single byte ends the names */
    memset(header->kind, 'k', sizeof(header->kind));
    memset(header->name, 'n', sizeof(*header) - offsetof(struct zone_header, name));
    memcpy(header->kind, kind->name, strlen(kind->name) + 1);
    memcpy(header->name, "n", sizeof("n"));
    header->magic = ZONE_MAGIC;
    header->version = 1;
    header->size = scene->size;
    add_part(scene, 1, header, offsetof(struct zone_header, kind) + strlen(kind->name) + 1);
    add_part(scene, 1, header->name, sizeof("n"));
    if (kind == &shm_map_kind)
        fill_map(scene, scene->view + page);
    else
        fill_metrics(scene, scene->view + page);
    scene->whole = malloc(changed_size(scene));
    require(scene->whole != NULL, "no memory");
    memcpy(scene->whole, scene->view, changed_size(scene));
}

/* Undoes the changes of the last input, and damages the memory anew. */
static int damage_scene(struct scene *scene, const uint8_t *data, size_t size)
{
    size_t page = segment_page();

    if (scene->kind == &shm_map_kind) {
        memcpy(scene->view, scene->whole, changed_size(scene));
    } else {
        memcpy(scene->view + page, scene->whole + page, HEADER);
        for (size_t at = 2 * page; at < changed_size(scene); at += page)
            memset(scene->view + at, 0, sizeof(shm_row) * countof(kinds));
    }
    memcpy(scene->view, scene->whole, sizeof(struct zone_header));
    for (size_t i = 0; i < EDITS && (i + 1) * EDIT + 2 <= size; i++) {
        const uint8_t *edit = &data[2 + i * EDIT];
        const struct part *part = &scene->parts[edit[0] % scene->part_n];

        scene->view[part->at + edit[1] % part->n] ^= (char)(edit[2] != 0 ? edit[2] : 1);
    }
    return fcntl(scene->fd, F_DUPFD_CLOEXEC, 0);
}

/* Hands the descriptor over, and makes the configuration's zone take it. */
static void adopt_memory(const struct zone_kind *kind, const void *kind_shape, int fd, size_t size)
{
    struct zones given, own;
    struct arena *arena = arena_create();
    struct log log = { 0 };
    struct zone *zone;

    require(arena != NULL, "no memory");
    zones_init(&given);
    zones_init(&own);
    log_init(&log, NULL, 0);
    zone = zone_declare(&own, arena, kind, "n", 1, kind_shape);
    require(zone != NULL && zone->size == size, "no zone");
    if (zones_adopt(&given, arena, fd) == -1)
        close(fd);
    require(zones_open(&own, &given, &log) == 0, "a zone of its own is not opened");
    zones_close(&given);
    if (kind == &shm_map_kind)
        use_map(&own, zone);
    else
        use_metrics(&own, zone);
    zones_close(&own);
    arena_destroy(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct scene scenes[2];
    size_t fresh_size = segment_page() + segment_pages(shm_metrics_kind.size(&shape));
    struct scene *scene;

    if (size < 2)
        return 0;
    if (data[0] < FRESH) {
        adopt_memory(&shm_metrics_kind, &shape, make_memory(data, size, fresh_size), fresh_size);
        return 0;
    }
    scene = &scenes[data[1] % 2];
    if (scene->view == NULL)
        build_scene(scene, data[1] % 2 == 0 ? &shm_map_kind : &shm_metrics_kind);
    adopt_memory(scene->kind, scene->shape, damage_scene(scene, data, size), scene->size);
    return 0;
}

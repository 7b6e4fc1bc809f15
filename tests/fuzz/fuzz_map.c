/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of a shared map, and between calls an attacker's stores into the map: links, lengths,
 * owners, locks, the lists of free entries. The first byte chooses the shape, and whether the map
 * has keys; each further byte chooses the next step, first of all damage. In the end all that is
 * left is read. Every call ends, within the map's memory; and without the attacker the map becomes
 * whole again. Most values of the first byte leave the last check out. */
#include "base/compiler.h"
#include "fuzz/input.h"
#include "shm/map_check.h"
#include "shm/map_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define VALUE_MOST 64
#define KEYS_MOST 128
#define LATER_MS 10000 /* when all that can expire has */

/* Replaces the C library's: a wait for a forged holder is pointless. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)time;
    (void)left;
    return 0;
}

/* Shapes without a limit of memory; a shape with a limit follows. */
#define PLAIN_SHAPES 4

static const struct shm_map_shape shapes[] = {
    { 1, 4, 8, 0 },
    { 6, 8, 16, 0 },
    { 40, 4, 8, 0 },
    { 100, 8, 24, 0 },
    { 6, 8, 16, 8 },
};

/* Memory of a map, kept from input to input, and the writable part of a new map and of a filled
 * map. */
struct scene {
    char *memory;
    char *written[2];
    size_t at, n; /* the part */
};

/* A number that is near a bound of the map, or any. */
static uint64_t next_number(struct input *in, const struct shm_map *map)
{
    uint64_t n = 0;

    switch (next_byte(in) % 12) {
    case 0:
        return 0;
    case 1:
        return map->table.entry_n;
    case 2:
        return map->table.entry_n + 1;
    case 3:
        return map->pool->used;
    case 4:
        return map->pool->used + 1;
    case 5:
        return UINT32_MAX;
    case 6:
        return UINT64_MAX - next_byte(in);
    case 7:
        return map->shape.value_max + 1;
    case 8:
        return (uint64_t)next_byte(in) << 32 | next_byte(in) << 11 | next_byte(in) % 4;
    case 9:
        for (int i = 0; i < 8; i++)
            n = n << 8 | next_byte(in);
        return n;
    default:
        return next_byte(in);
    }
}

/* The first entry from `index` on within a chain, by the owner field. */
static uint32_t chained_entry(const struct shm_map *map, uint32_t index)
{
    for (uint32_t n = 0; n < map->table.entry_n; n++, index = index % map->touched_most + 1) {
        uint8_t owner = *shm_map_owner(map, index);

        if (owner != 0 && owner <= map->table.shard_n && index != map->shards[owner - 1].spare)
            break;
    }
    return index;
}

static void damage_entry(struct input *in, struct shm_map *map, uint32_t index)
{
    struct shm_map_entry *entry = shm_map_entry_at(map, index);
    uint8_t what = next_byte(in);
    uint64_t to = next_number(in, map);

    switch (what % 8) {
    case 0:
        entry->key_n = (uint32_t)to;
        break;
    case 1:
        entry->hash = to;
        break;
    case 2:
        entry->hash += to << 6; /* the bucket stays */
        break;
    case 3:
        entry->version = to;
        break;
    case 4:
        entry->expires_ms = to;
        break;
    case 5:
        entry->value_n = (uint32_t)to;
        break;
    case 6:
        entry->kept_for = (uint32_t)to;
        break;
    default:
        entry->next = (uint32_t)to;
    }
}

static void damage_shard(struct input *in, struct shm_map *map, struct shm_map_shard *shard)
{
    uint8_t what = next_byte(in);
    uint64_t to = next_number(in, map);

    switch (what % 8) {
    case 0:
        shard->lock.word = to;
        break;
    case 1:
        shard->sequence = to;
        break;
    case 2:
        shard->version = to;
        break;
    case 3:
        shard->soonest_ms = to;
        break;
    case 4:
        if (what < 128)
            shard->count = (uint32_t)to;
        else
            shard->bytes = to;
        break;
    case 5:
        shard->spare = (uint32_t)to;
        break;
    case 6:
        shard->suspect = (uint32_t)to;
        break;
    default:
        shard->kept_for = (uint32_t)to;
    }
}

static void damage(struct input *in, struct shm_map *map)
{
    uint8_t what = next_byte(in);
    uint32_t at = (uint32_t)next_byte(in) % map->touched_most;

    switch (what % 8) {
    case 0:
        shm_map_buckets(map, 0)[at % (map->table.shard_n * map->table.bucket_n)] =
            (uint32_t)next_number(in, map);
        break;
    case 1:
        *shm_map_owner(map, at + 1) = next_byte(in);
        break;
    case 2:
        *shm_map_owner(map, at + 1) = (uint8_t)(next_byte(in) % (map->table.shard_n + 1));
        break;
    case 3:
        damage_shard(in, map, &map->shards[at % map->table.shard_n]);
        break;
    case 4:
        map->pool->free = (uint32_t)next_number(in, map);
        break;
    case 5:
        map->pool->used = (uint32_t)next_number(in, map);
        break;
    case 6:
        if (at % 4 == 0)
            map->pool->lock.word = next_number(in, map);
        else if (at % 4 == 1)
            map->checked = map->pool_checked = 0; /* a process that comes now has not */
        else
            map->pool->free = at;
        break;
    default:
        damage_entry(in, map, chained_entry(map, at + 1));
    }
}

/* The number of keys in calls: more than fit. */
static uint32_t key_n(const struct shm_map *map)
{
    uint32_t n = 2 * map->shape.capacity + 2;

    return n < KEYS_MOST ? n : KEYS_MOST;
}

/* Shortens the wait for a forged holder to the minimum. */
static void lose_patience(struct shm_map *map)
{
    map->table.locker.patience = 1;
    map->table.locker.impatient_at = map->table.locker.acquired;
}

/* Walks from anywhere, at most as often as there can be keys: damage may bring some back. */
static enum shm_map_status walk(struct input *in, struct shm_map *map, uint64_t now)
{
    struct shm_map_cursor cursor = { (uint64_t)next_byte(in) << 56, next_byte(in) };
    enum shm_map_status status = SHM_MAP_MORE;

    for (uint32_t i = 0; i < map->table.entry_n && status != SHM_MAP_ABSENT; i++) {
        char name[4], value[VALUE_MOST];
        struct shm_map_item key = { .value = name, .room = sizeof(name) };
        struct shm_map_item item = { .value = value, .room = sizeof(value) };

        status = shm_map_next(map, &cursor, now, &key, &item);
        require(key.n <= map->shape.key_max && item.n <= map->shape.value_max, "and so in a walk");
    }
    return status;
}

static void call(struct input *in, struct shm_map *map, uint8_t what)
{
    char value[VALUE_MOST];
    struct shm_map_item item = { .value = value, .room = next_byte(in) % sizeof(value) };
    uint8_t key = (uint8_t)(next_byte(in) % key_n(map));
    size_t n = next_byte(in) % (map->shape.value_max + 2);
    uint64_t now = 100 + what, expires = key % 3 == 0 ? now + 20 : 0;
    enum shm_map_status status;

    lose_patience(map);
    memset(value, key, sizeof(value));
    switch (what < 192 ? what % 6 : 6 + what % 3) {
    case 6:
        status = shm_map_remove(map, &key, 1, now, 1 + n % 3);
        break;
    case 7:
        status = shm_map_append(map, &key, 1, now, value, n, expires);
        break;
    case 8:
        status = walk(in, map, now);
        break;
    case 0:
        status = shm_map_set(map, &key, 1, now, value, n, expires, NULL);
        break;
    case 1:
        status = shm_map_add(map, &key, 1, now, 1, NULL);
        break;
    case 2:
        status = shm_map_delete(map, &key, 1, now);
        break;
    case 3:
        status = shm_map_replace(map, &key, 1, now, n % 3, value, 8, SHM_MAP_KEEP_EXPIRY, NULL);
        break;
    case 4:
        shm_map_sweep(map, now);
        require(shm_map_count(map) <= map->table.entry_n, "a count is no more than fit");
        return;
    default:
        status = shm_map_get(map, &key, 1, now, &item);
        require(status == SHM_MAP_ABSENT || item.n <= map->shape.value_max, "a value has its size");
        require(status != SHM_MAP_OK || item.n <= item.room, "a value fits into the room");
    }
    require(status <= SHM_MAP_MORE, "a call ends with a status");
}

/* Without further damage the map is repaired, takes keys until it is full, and is whole. */
static void check_mended(struct shm_map *map)
{
    enum shm_map_status status = SHM_MAP_OK;
    uint64_t now = LATER_MS;

    shm_map_pool_suspect(map, SHM_MAP_KEEPS_NOTHING);
    for (uint32_t key = 1000; status == SHM_MAP_OK && key < 1000 + 2 * map->table.entry_n; key++) {
        lose_patience(map);
        status = shm_map_set(map, &key, sizeof(key), now, "", 0, 0, NULL);
    }
    require(status == SHM_MAP_FULL, "it becomes full");
    for (uint32_t key = 1000; key < 1000 + 2 * map->table.entry_n; key++)
        shm_map_delete(map, &key, sizeof(key), now);
    for (uint8_t key = 0; key < KEYS_MOST; key++)
        shm_map_delete(map, &key, sizeof(key), now);
    shm_map_pool_audit(map);
    shm_map_pool_suspect(map, SHM_MAP_KEEPS_NOTHING);
    shm_map_sweep(map, now);
    map_check(map);
}

/* Reads whatever damage has left: chains, locks, the pool, and in a repair all entries. */
static void read_all(struct shm_map *map)
{
    char value[VALUE_MOST];
    struct shm_map_item item = { .value = value, .room = sizeof(value) };

    for (uint8_t key = 0; key < key_n(map); key++) {
        lose_patience(map);
        shm_map_get(map, &key, 1, LATER_MS / 2, &item);
    }
    lose_patience(map);
    shm_map_add(map, &(uint8_t) { KEYS_MOST }, 1, LATER_MS / 2, 1, NULL);
    shm_map_pool_suspect(map, SHM_MAP_SUSPECT);
    lose_patience(map);
    shm_map_sweep(map, LATER_MS / 2);
    require(shm_map_count(map) <= map->table.entry_n, "a count is no more than fit");
    require(map->table.hold.lock == NULL && map->pool_hold.lock == NULL, "no lock is kept");
}

static void open_map(struct shm_map *map, const struct scene *scene, uint32_t shape)
{
    shm_map_open(map, scene->memory, &shapes[shape], (struct slot_id) { 1, 1 });
    map->seed[0] = 1; /* the same chains each time */
    map->seed[1] = 2;
}

/* Fills the map, and gives two entries back to the pool. */
static void fill_map(struct shm_map *map)
{
    char value[VALUE_MOST] = "";

    for (uint8_t key = 0; key < map->shape.capacity; key++)
        require(shm_map_set(map, &key, 1, 1, value, key % (map->shape.value_max + 1),
                    key % 3 == 0 ? 110 : 0, NULL) == SHM_MAP_OK,
            "a key fits");
    for (uint8_t key = 1; key < 3; key++)
        shm_map_delete(map, &key, 1, 1);
}

static char *copy_written(const struct scene *scene)
{
    char *copy = malloc(scene->n);

    require(copy != NULL, "there is memory");
    return memcpy(copy, scene->memory + scene->at, scene->n);
}

/* Builds the map, and protects its header, written by the master alone: a store is an error. */
static void build_scene(struct scene *scene, uint32_t shape)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = shm_map_kind.size(&shapes[shape]);
    void *memory;
    struct shm_map map;

    require(posix_memalign(&memory, page, bytes) == 0, "there is memory");
    memset(memory, 0, bytes);
    shm_map_kind.init(memory, &shapes[shape]);
    scene->memory = memory;
    scene->at = segment_pages(shm_map_kind.header);
    scene->n = bytes - scene->at;
    require(mprotect(memory, scene->at, PROT_READ) == 0, "a header can be protected");
    scene->written[0] = copy_written(scene);
    open_map(&map, scene, shape);
    fill_map(&map);
    scene->written[1] = copy_written(scene);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct scene scenes[countof(shapes)];
    struct input in = { data, data + size };
    uint8_t first = next_byte(&in);
    uint32_t shape = first < 252 ? first % PLAIN_SHAPES : PLAIN_SHAPES;
    struct scene *scene = &scenes[shape];
    bool filled = first / 4 % 8 != 0;
    struct shm_map map;

    if (scene->memory == NULL)
        build_scene(scene, shape);
    memcpy(scene->memory + scene->at, scene->written[filled], scene->n);
    open_map(&map, scene, shape);
    damage(&in, &map);
    if (memcmp(scene->memory + scene->at, scene->written[filled], scene->n) == 0)
        shm_map_buckets(&map, 0)[0] ^= 1; /* the damage was what was there */
    while (in.p < in.end) {
        uint8_t what = next_byte(&in);

        if (what % 4 == 0)
            damage(&in, &map);
        else
            call(&in, &map, what);
    }
    read_all(&map);
    if (first < 64)
        check_mended(&map);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the log of a map's changes, up to a state of the shard: the sum of version and
 * sequence, which grows with each change and each repair. Records are reserved before the write and
 * published afterwards, so that a reader knows the range perhaps written over. */
#include "shm/map_log.h"

#include "shm/map_private.h"

#define MAGIC 0x66626c67u
#define REVISION 2u
#define RING_LEAST 16384
#define WISH_WORDS (SLOT_HALVES * SLOT_MAX / 64)

static_assert(TABLE_SHARDS_MAX <= 64, "a reader has a place in every shard");

struct shm_map_log {
    uint32_t magic, revision;
    struct shm_map_shape shape; /* shape at the making of the map */
};

struct ring {
    alignas(CACHE_LINE) _Atomic uint64_t reserved; /* positions grow for ever */
    _Atomic uint64_t end;
    _Atomic uint64_t state; /* the shard's state up to which the log is complete */
};

struct record {
    uint64_t at; /* its position */
    uint64_t hash;
    uint32_t what, key_n;
};

static uint64_t ring_size(const struct shm_map_shape *shape)
{
    uint64_t size = RING_LEAST;

    while (size < 4 * (shape->key_max + sizeof(struct record)))
        size *= 2;
    return size;
}

/* The first page is followed by the wishes, then the rings, and then their bytes. */
static _Atomic uint64_t *wishes_of(const struct shm_map *map)
{
    return (_Atomic uint64_t *)(void *)((char *)map->log + segment_page());
}

static struct ring *ring_of(const struct shm_map *map, uint32_t shard)
{
    char *rings = (char *)wishes_of(map) + WISH_WORDS * sizeof(uint64_t);

    assert(shard < TABLE_SHARDS_MAX);
    return (struct ring *)(void *)(rings + shard * sizeof(struct ring));
}

static unsigned char *bytes_of(const struct shm_map *map, uint32_t shard)
{
    return (unsigned char *)ring_of(map, 0) + TABLE_SHARDS_MAX * sizeof(struct ring) +
           shard * ring_size(&map->shape);
}

static size_t log_size(const void *shape)
{
    return shm_map_kind.size(shape) == 0
               ? 0
               : segment_page() + WISH_WORDS * sizeof(uint64_t) +
                     TABLE_SHARDS_MAX * (sizeof(struct ring) + ring_size(shape));
}

static int init_log(void *memory, const void *shape)
{
    struct shm_map_log *log = memory;

    log->shape = *(const struct shm_map_shape *)shape;
    log->revision = REVISION;
    log->magic = MAGIC;
    return 0;
}

/* Fits where its map does. */
static bool is_log(const void *memory, const void *shape)
{
    const struct shm_map_log *log = memory;

    return log->magic == MAGIC && log->revision == REVISION && shm_map_fits(&log->shape, shape);
}

const struct zone_kind shm_map_log_kind = {
    .name = "map log",
    .size = log_size,
    .init = init_log,
    .is = is_log,
    .header = sizeof(struct shm_map_log),
};

void shm_map_log_open(struct shm_map *map, void *memory)
{
    assert(memory == NULL || is_log(memory, &map->shape));
    map->log = memory;
}

uint64_t shm_map_log_state(const struct shm_map *map, uint32_t shard)
{
    const struct shm_map_shard *s = &map->shards[shard];

    return ZONE_LOAD(s->version) + ZONE_LOAD(s->sequence);
}

/* Copies to or from a ring, wrapping at the end. */
static void copy_round(
    unsigned char *ring, uint64_t size, uint64_t at, void *bytes, size_t n, bool in)
{
    assert(n <= size && (size & (size - 1)) == 0);
    for (size_t done = 0; done < n;) {
        size_t from = (at + done) & (size - 1), part = n - done;

        if (part > size - from)
            part = size - from;
        if (in)
            memcpy(ring + from, (char *)bytes + done, part);
        else
            memcpy((char *)bytes + done, ring + from, part);
        done += part;
    }
}

static uint64_t record_bytes(size_t key_n)
{
    return (sizeof(struct record) + key_n + 7) / 8 * 8;
}

void shm_map_log_put(struct shm_map *map, uint32_t shard, uint64_t before, enum shm_map_change what,
    uint64_t hash, const void *key, size_t key_n)
{
    struct ring *ring = ring_of(map, shard);
    uint64_t size = ring_size(&map->shape), at = ZONE_LOAD(ring->end);
    struct record record = { .hash = hash, .what = what, .key_n = (uint32_t)key_n };

    assert(map->table.hold.lock == &map->shards[shard].lock && key_n <= map->shape.key_max);
    if (ZONE_LOAD(ring->state) != before) /* changes are missing: jumps beyond all readers */
        at += 2 * size;
    at = (at + 7) / 8 * 8;
    record.at = at;
    if (!table_holds(&map->table))
        return;
    ZONE_STORE(ring->reserved, at + record_bytes(key_n));
    atomic_thread_fence(memory_order_seq_cst);
    copy_round(bytes_of(map, shard), size, at, &record, sizeof(record), true);
    copy_round(
        bytes_of(map, shard), size, at + sizeof(record), (void *)(uintptr_t)key, key_n, true);
    if (!table_holds(&map->table))
        return;
    ZONE_STORE(ring->end, at + record_bytes(key_n));
    ZONE_STORE(ring->state, shm_map_log_state(map, shard));
    map->mended.logged++;
}

void shm_map_log_skip(struct shm_map *map, uint32_t shard, uint64_t before)
{
    struct ring *ring = ring_of(map, shard);

    assert(map->log != NULL && map->table.hold.lock == &map->shards[shard].lock);
    if (ZONE_LOAD(ring->state) == before && table_holds(&map->table))
        ZONE_STORE(ring->state, shm_map_log_state(map, shard));
}

void shm_map_log_begin(struct shm_map *map, struct shm_map_reader *reader)
{
    for (uint32_t shard = 0; shard < map->table.shard_n; shard++) {
        reader->positions[shard] = ZONE_LOAD(ring_of(map, shard)->end);
        reader->told[shard] = shm_map_log_state(map, shard);
    }
}

/* Reads the record at the reader's position; false where it is none, or was written over. */
static bool read_log_record(
    const struct shm_map *map, uint32_t shard, uint64_t at, void *room, struct record *record)
{
    struct ring *ring = ring_of(map, shard);
    uint64_t size = ring_size(&map->shape);

    assert(shard < map->table.shard_n);
    copy_round(bytes_of(map, shard), size, at, record, sizeof(*record), false);
    if (record->at != at || record->key_n > map->shape.key_max)
        return false;
    copy_round(bytes_of(map, shard), size, at + sizeof(*record), room, record->key_n, false);
    atomic_thread_fence(memory_order_acquire);
    return ZONE_LOAD(ring->reserved) - at <= size &&
           (record->what == SHM_MAP_WAS_SET || record->what == SHM_MAP_WAS_DELETED ||
               record->what == SHM_MAP_WAS_EXPIRED) &&
           siphash(map->seed, room, record->key_n) == record->hash;
}

bool shm_map_log_next(
    struct shm_map *map, struct shm_map_reader *reader, void *room, struct shm_map_changed *out)
{
    assert(map->log != NULL);
    for (uint32_t shard = 0; shard < map->table.shard_n; shard++) {
        uint64_t at = reader->positions[shard], end = ZONE_LOAD(ring_of(map, shard)->end);
        struct record record;

        if (at == end)
            continue;
        if (end - at <= ring_size(&map->shape) && read_log_record(map, shard, at, room, &record)) {
            reader->positions[shard] = at + record_bytes(record.key_n);
            *out =
                (struct shm_map_changed) { (enum shm_map_change)record.what, room, record.key_n };
            return true;
        }
        /* a loss: records after the end are read again */
        reader->told[shard] = shm_map_log_state(map, shard);
        reader->positions[shard] = ZONE_LOAD(ring_of(map, shard)->end);
        *out = (struct shm_map_changed) { .what = SHM_MAP_LOST };
        return true;
    }
    return false;
}

void shm_map_log_audit(struct shm_map *map, struct shm_map_reader *reader)
{
    assert(map->log != NULL && map->table.hold.lock == NULL);
    for (uint32_t shard = 0; shard < map->table.shard_n; shard++) {
        const struct shm_map_shard *s = &map->shards[shard];
        struct ring *ring = ring_of(map, shard);
        uint64_t state;

        if (ZONE_LOAD(s->lock.word) != 0 && shm_map_shard_try(map, shard))
            zone_lock_release(&map->table.hold);
        if (ZONE_LOAD(s->lock.word) != 0)
            continue;
        state = shm_map_log_state(map, shard);
        /* missing changes, by a state without changes meanwhile */
        if (ZONE_LOAD(ring->state) != state && ZONE_LOAD(s->lock.word) == 0 &&
            shm_map_log_state(map, shard) == state && reader->told[shard] != state)
            reader->positions[shard] = ZONE_LOAD(ring->end) + 1; /* leads nowhere */
    }
}

void shm_map_log_wish(struct shm_map *map, uint32_t slot)
{
    assert(slot < SLOT_HALVES * SLOT_MAX);
    atomic_fetch_or(&wishes_of(map)[slot / 64], UINT64_C(1) << slot % 64);
}

uint64_t shm_map_log_take_wishes(struct shm_map *map, uint32_t i)
{
    _Atomic uint64_t *word = &wishes_of(map)[i];

    assert(i < WISH_WORDS);
    atomic_thread_fence(memory_order_seq_cst);
    return ZONE_LOAD(*word) == 0 ? 0 : atomic_exchange(word, 0);
}

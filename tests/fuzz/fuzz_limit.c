/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of two workers on limits, and between them stores of an attacker into all that workers can
 * write: locks, heads, links, states, cells. The first byte chooses the shape; a byte each says
 * what comes next, of which the first is damage. Every call ends, within the memory; and when the
 * attacker has stopped and both workers have come by, nothing of the damage is left: all sessions
 * are given back, no memory is in use, and limits are exact. */
#include "base/compiler.h"
#include "fuzz/input.h"
#include "shm/limit_checks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORKERS 2
#define HELD 12 /* sessions of a worker */
#define KEYS 12
#define MOST 5
#define SECOND UINT64_C(1000000000)

/* Replaces the C library's: a wait for a forged holder is pointless. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)time;
    (void)left;
    return 0;
}

static const struct shm_limit_shape shapes[] = {
    { .size = UINT64_C(3) * SHM_LIMIT_UNIT },
    { .size = UINT64_C(9) * SHM_LIMIT_UNIT },
    { .size = UINT64_C(40) * SHM_LIMIT_UNIT },
    { .size = UINT64_C(1024) * SHM_LIMIT_UNIT },
};

struct worker {
    struct shm_limit limit;
    struct shm_limit_count *held[HELD];
    uint32_t held_n;
};

struct scene {
    void *memory;
    size_t size;
    struct worker workers[WORKERS];
    const struct shm_limit_shape *shape;
    uint64_t now;
};

static void start_worker(struct scene *scene, uint32_t i, uint32_t serial)
{
    struct slot_id id = { .slot = 1 + i, .serial = serial };
    struct worker *worker = &scene->workers[i];

    shm_limit_kind.slot_acquired(scene->memory, scene->shape, id);
    worker->held_n = 0;
    shm_limit_open(&worker->limit, scene->memory, scene->shape, id);
}

static void kill_worker(struct scene *scene, uint32_t i)
{
    struct worker *worker = &scene->workers[i];

    shm_limit_kind.slot_released(scene->memory, scene->shape, worker->limit.table.locker.id);
    shm_limit_close(&worker->limit);
}

/* A word written by a worker, or any word. */
static uint64_t next_word(struct input *in, const struct scene *scene)
{
    const struct shm_limit *limit = &scene->workers[next_byte(in) % WORKERS].limit;
    uint64_t n = next_byte(in);

    switch (next_byte(in) % 12) {
    case 0:
        return 0;
    case 1:
        return limit->table.entry_n + n % 2;
    case 2:
        return n << 32 | SHM_LIMIT_KEY;
    case 3:
        return n << 32 | SHM_LIMIT_CELLS;
    case 4:
        return n << 32 | shm_limit_reserved(limit);
    case 5:
        return shm_limit_cell(limit, (uint32_t)n % 4);
    case 6:
        return shm_limit_cell(limit, UINT32_MAX);
    case 7:
        return scene->now + n * SECOND;
    case 8:
        return UINT64_MAX - n;
    case 9:
        for (int i = 0; i < 8; i++)
            n = n << 8 | next_byte(in);
        return n;
    default:
        return n % (limit->table.entry_n + 1);
    }
}

static void damage_unit(struct input *in, struct scene *scene, struct shm_limit_unit *unit)
{
    uint8_t what = next_byte(in) % (3 + SHM_LIMIT_WORDS);
    uint64_t to = next_word(in, scene);

    if (what == 0)
        unit->next = (uint32_t)to;
    else if (what == 1)
        unit->more = (uint32_t)to;
    else if (what == 2)
        unit->state = to;
    else
        unit->words[what - 3] = to;
}

static void damage(struct input *in, struct scene *scene)
{
    struct shm_limit *limit = &scene->workers[0].limit;
    uint32_t at = next_byte(in), shard = at % limit->table.shard_n;
    struct shm_limit_shard *s = &limit->shards[shard];

    switch (next_byte(in) % 8) {
    case 0:
        s->lock.word = next_word(in, scene);
        break;
    case 1:
        s->free = next_word(in, scene);
        break;
    case 2:
        s->used = (uint32_t)next_word(in, scene);
        break;
    case 3:
        s->rebuilds = (uint32_t)next_word(in, scene);
        break;
    case 4:
        *(_Atomic uint64_t *)table_bucket(&limit->table, shard, at * 7 % limit->table.bucket_n) =
            next_word(in, scene);
        break;
    default:
        damage_unit(in, scene, shm_limit_unit_at(limit, shard, 1 + at / 4 % limit->table.entry_n));
    }
}

/* Shortens the wait for a forged holder to the minimum. */
static void lose_patience(struct shm_limit *limit)
{
    limit->table.locker.patience = 1;
    limit->table.locker.impatient_at = limit->table.locker.acquired;
}

static void call(struct input *in, struct scene *scene, uint8_t what)
{
    static const struct shm_limit_rate rate = { SECOND, 3 * SECOND };
    uint32_t i = what / 8 % WORKERS, n;
    struct worker *worker = &scene->workers[i];
    uint8_t key = next_byte(in) % KEYS;
    enum shm_limit_status status = SHM_LIMIT_OK;

    lose_patience(&worker->limit);
    scene->now += SECOND / 4;
    switch (what % 8) {
    case 0:
    case 1:
    case 2:
        if (worker->held_n == HELD)
            break;
        status = shm_limit_take(
            &worker->limit, &key, 1, scene->now, MOST, &worker->held[worker->held_n]);
        worker->held_n += status == SHM_LIMIT_OK;
        break;
    case 3:
    case 4:
        if (worker->held_n == 0)
            break;
        n = key % worker->held_n;
        shm_limit_give(&worker->limit, worker->held[n], scene->now);
        worker->held[n] = worker->held[--worker->held_n];
        break;
    case 5:
        status = shm_limit_pass(&worker->limit, &key, 1, scene->now, &rate);
        break;
    case 6:
        limit_sweep(&worker->limit, scene->now);
        break;
    default:
        kill_worker(scene, i);
        start_worker(scene, i, worker->limit.table.locker.id.serial + 1);
    }
    require(status <= SHM_LIMIT_FULL, "a call ends with a status");
}

/* Lets the workers look at all accounts, as after a death, and give all back. */
static void settle(struct scene *scene)
{
    scene->now += 100 * 3600 * SECOND;
    for (uint32_t i = 0; i < 3 * WORKERS; i++) {
        struct worker *worker = &scene->workers[i % WORKERS];

        lose_patience(&worker->limit);
        limit_sweep(&worker->limit, scene->now);
    }
}

static uint32_t mendings(const struct scene *scene)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < WORKERS; i++)
        n += scene->workers[i].limit.mended.rebuilt + scene->workers[i].limit.mended.recounted +
             scene->workers[i].limit.mended.taken;
    return n;
}

/* Gives all sessions back, and uses the remaining entries. */
static void use_all(struct scene *scene, bool exact)
{
    static struct shm_limit_count *counts[1300];
    struct shm_limit *limit = &scene->workers[0].limit;
    uint32_t n = 0, key = 0;

    settle(scene);
    for (uint32_t i = 0; i < WORKERS; i++)
        while (scene->workers[i].held_n > 0)
            shm_limit_give(&scene->workers[i].limit,
                scene->workers[i].held[--scene->workers[i].held_n], scene->now);
    settle(scene); /* while there was no room for them, some counts were not there */
    require(limit_used(limit) == 0, "no memory is in use");
    for (; key < countof(counts); key++)
        n += shm_limit_take(limit, &key, sizeof(key), scene->now, 1, &counts[n]) == SHM_LIMIT_OK;
    require(!exact || n == limit->table.shard_n * limit->table.entry_n, "as many keys as units");
    while (n > 0)
        shm_limit_give(limit, counts[--n], scene->now);
}

static void check_mended(struct scene *scene)
{
    struct shm_limit *limit = &scene->workers[0].limit;
    struct shm_limit_count *counts[MOST], *none;
    uint32_t before;

    use_all(scene, false);
    settle(scene);
    before = mendings(scene);
    use_all(scene, true);
    for (int i = 0; i < MOST; i++)
        require(shm_limit_take(limit, "k", 1, scene->now, MOST, &counts[i]) == SHM_LIMIT_OK,
            "all of a limit is there");
    require(shm_limit_take(&scene->workers[1].limit, "k", 1, scene->now, MOST, &none) ==
                SHM_LIMIT_REACHED,
        "and no more");
    for (int i = 0; i < MOST; i++)
        shm_limit_give(limit, counts[i], scene->now);
    require(mendings(scene) == before, "nothing is left to mend");
    limit_check(limit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct scene scenes[countof(shapes)];
    struct input in = { data, data + size };
    uint8_t first = next_byte(&in);
    uint8_t shape = first < 240 ? first % (countof(shapes) - 1) : countof(shapes) - 1;
    struct scene *scene = &scenes[shape];

    if (scene->memory == NULL) {
        scene->shape = &shapes[shape];
        scene->size = shm_limit_kind.size(scene->shape);
        require(posix_memalign(&scene->memory, CACHE_LINE, scene->size) == 0, "there is memory");
    }
    memset(scene->memory, 0, scene->size);
    shm_limit_kind.init(scene->memory, scene->shape);
    memset(((struct shm_limit_header *)scene->memory)->seed, 7, 4 * sizeof(uint64_t));
    scene->now = SECOND;
    for (uint32_t i = 0; i < WORKERS; i++)
        start_worker(scene, i, 1);
    for (uint8_t i = 0; i < 8; i++) /* some counts to damage */
        call(&(struct input) { &i, &i + 1 }, scene, i % 2 == 0 ? 0 : 5 + 8);
    while (in.p < in.end) {
        uint8_t what = next_byte(&in);

        if (what % 3 == 0)
            damage(&in, scene);
        else
            call(&in, scene, what / 3);
    }
    check_mended(scene);
    for (uint32_t i = 0; i < WORKERS; i++)
        kill_worker(scene, i);
    return 0;
}

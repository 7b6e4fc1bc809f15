/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers are killed while they write, SOAK_KILLS times. Results of calls stay true, and a killed
 * worker's call was done or not. */
#include "shm/map_private.h"
#include "shm/memory.h"
#include "support/test.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILLS 200
#define ALL_AT_ONCE 20 /* kills between those of all workers */
#define STEPS_MOST 400 /* updates of a worker between two kills */

#define WORKERS 3
#define ORPHAN 2     /* a worker with some deaths reported late: the locks are taken */
#define KEYS 8       /* keys of a worker */
#define SUMS 4       /* to which all add */
#define GARBAGE 50   /* keys already expired when set, without room */
#define LOG_MOST 150 /* bytes of a worker's log, before the log begins anew */
#define CAPACITY (WORKERS * KEYS + WORKERS + SUMS + 8)
#define NOW 5

/* The second with entries of pages. */
static const struct shm_map_shape shapes[] = { { CAPACITY, 16, 200, 0 },
    { CAPACITY, 16, 200, CAPACITY + WORKERS } };

/* Notes a worker's progress with a key of its own. The states are numbered. */
struct line {
    _Atomic uint32_t begun; /* the state about to be made */
    _Atomic uint32_t done;  /* the last that it has made */
    uint32_t latest;        /* no later state has this number or a lower one */
};

struct ledger {
    struct line lines[WORKERS][KEYS];
    _Atomic int64_t begun[WORKERS][SUMS], done[WORKERS][SUMS];
    _Atomic uint32_t log_begun[WORKERS], log_done[WORKERS]; /* the logs' lengths */
    _Atomic uint64_t steps[WORKERS];                        /* calls that it has made */
};

/* The parent's. */
struct soak {
    struct shm_map *map;
    struct ledger *ledger;
    pid_t pids[WORKERS];
    uint32_t serials[WORKERS];
    int64_t sums[SUMS]; /* when all were last dead */
    uint64_t random;
    unsigned spawned;
};

struct value {
    uint32_t worker, key, state;
    uint32_t check;
    unsigned char filler[180];
};

/* A key is absent in its first state, and in every fifth. */
static bool is_absent(uint32_t state)
{
    return state % 5 == 0;
}

static uint32_t checksum(const struct value *value, size_t n)
{
    const unsigned char *bytes = (const unsigned char *)value;
    uint32_t sum = value->worker * 31 + value->key * 37 + value->state * 41;

    for (size_t i = offsetof(struct value, filler); i < n; i++)
        sum = sum * 33 + bytes[i];
    return sum;
}

static size_t make_value(struct value *value, uint32_t worker, uint32_t key, uint32_t state)
{
    size_t n = offsetof(struct value, filler) + state % sizeof(value->filler);

    *value = (struct value) { .worker = worker, .key = key, .state = state };
    memset(value->filler, (int)state, sizeof(value->filler));
    value->check = checksum(value, n);
    return n;
}

static size_t key_of(char name[16], uint32_t worker, uint32_t key)
{
    return (size_t)snprintf(name, 16, "w%uk%u", worker, key);
}

/* Returns 0 and the state of the key (0: absent), or the fault. */
static int read_state(struct shm_map *map, uint32_t worker, uint32_t key, uint32_t *state)
{
    struct value value;
    struct shm_map_item item = { .value = &value, .room = sizeof(value) };
    char name[16];
    enum shm_map_status status = shm_map_get(map, name, key_of(name, worker, key), NOW, &item);

    *state = 0;
    if (status == SHM_MAP_ABSENT)
        return 0;
    if (status != SHM_MAP_OK || item.n < offsetof(struct value, filler))
        return 10;
    if (value.worker != worker || value.key != key)
        return 11;
    if (value.check != checksum(&value, item.n))
        return 12;
    *state = value.state;
    return 0;
}

static enum shm_map_status make_state(
    struct shm_map *map, uint32_t worker, uint32_t key, uint32_t state)
{
    struct shm_map_item item = { .room = 0 };
    struct value value;
    size_t n = make_value(&value, worker, key, state);
    char name[16];
    size_t name_n = key_of(name, worker, key);

    if (is_absent(state)) {
        shm_map_delete(map, name, name_n, NOW);
        return SHM_MAP_OK;
    }
    if (state % 5 > 1)
        return shm_map_set(map, name, name_n, NOW, &value, n, state % 2 * 100, NULL);
    shm_map_get(map, name, name_n, NOW, &item);
    return shm_map_replace(map, name, name_n, NOW, item.version, &value, n, 0, NULL);
}

static void work_on_key(struct shm_map *map, struct ledger *ledger, uint32_t worker, uint32_t key)
{
    struct line *line = &ledger->lines[worker][key];
    uint32_t state = ++line->latest, found;
    int wrong, tries = 0;

    line->begun = state;
    /* garbage may be there again before there was a look for room */
    while (make_state(map, worker, key, state) != SHM_MAP_OK)
        if (++tries == 1000)
            _exit(1);
    line->done = state;
    wrong = read_state(map, worker, key, &found);
    if (wrong != 0)
        _exit(wrong);
    if (found != (is_absent(state) ? 0 : state))
        _exit(2);
}

static void work_on_sum(struct shm_map *map, struct ledger *ledger, uint32_t worker, uint32_t sum)
{
    char name[16];
    size_t name_n = (size_t)snprintf(name, sizeof(name), "sum%u", sum);

    ledger->begun[worker][sum]++;
    if (shm_map_add(map, name, name_n, NOW, 1, NULL) != SHM_MAP_OK)
        _exit(3);
    ledger->done[worker][sum]++;
}

/* Returns the log's length, or a negative number for the fault found. */
static int read_log(struct shm_map *map, uint32_t worker, uint64_t *version)
{
    unsigned char value[LOG_MOST];
    struct shm_map_item item = { .value = value, .room = sizeof(value) };
    char name[16];
    size_t name_n = (size_t)snprintf(name, sizeof(name), "log%u", worker);
    enum shm_map_status status = shm_map_get(map, name, name_n, NOW, &item);

    *version = item.version;
    if (status == SHM_MAP_ABSENT)
        return 0;
    if (status != SHM_MAP_OK)
        return -1;
    for (size_t i = 0; i < item.n; i++)
        if (value[i] != i)
            return -2;
    return (int)item.n;
}

/* Appends a byte to the worker's log, or deletes a full log. */
static void work_on_log(struct shm_map *map, struct ledger *ledger, uint32_t worker)
{
    uint32_t n = ledger->log_done[worker];
    unsigned char byte = (unsigned char)n;
    char name[16];
    size_t name_n = (size_t)snprintf(name, sizeof(name), "log%u", worker);
    enum shm_map_status status = SHM_MAP_FULL;
    uint64_t version;

    if (read_log(map, worker, &version) != (int)n)
        _exit(4);
    ledger->log_begun[worker] = n == LOG_MOST ? 0 : n + 1;
    for (int tries = 0; status == SHM_MAP_FULL && tries < 1000; tries++)
        status = n == LOG_MOST
                     ? shm_map_remove(map, name, name_n, NOW, version)
                     : shm_map_append(map, name, name_n, NOW, &byte, 1, SHM_MAP_KEEP_EXPIRY);
    if (status != SHM_MAP_OK)
        _exit(5);
    ledger->log_done[worker] = ledger->log_begun[worker];
}

static void work_on_map(const struct soak *soak, uint32_t worker, uint64_t random)
{
    for (;;) {
        uint32_t what = random_below(&random, 5), n = random_below(&random, GARBAGE);
        char name[16];
        size_t name_n = (size_t)snprintf(name, sizeof(name), "garbage%u", n);

        if (what == 0)
            work_on_sum(soak->map, soak->ledger, worker, n % SUMS);
        else if (what == 1)
            shm_map_set(soak->map, name, name_n, NOW, name, name_n, NOW, NULL);
        else if (what == 2)
            work_on_log(soak->map, soak->ledger, worker);
        else
            work_on_key(soak->map, soak->ledger, worker, n % KEYS);
        soak->ledger->steps[worker]++;
    }
}

static void spawn_worker(struct soak *soak, uint32_t worker)
{
    soak->serials[worker] = ++soak->spawned;
    soak->pids[worker] = fork_child();
    if (soak->pids[worker] != 0)
        return;
    map_join(soak->map, 1 + worker, soak->spawned);
    work_on_map(soak, worker, soak->spawned);
}

/* Before anybody writes to the keys again. */
static void check_keys(struct soak *soak, uint32_t worker)
{
    for (uint32_t key = 0; key < KEYS; key++) {
        struct line *line = &soak->ledger->lines[worker][key];
        uint32_t begun = line->begun, done = line->done, state;
        int wrong = read_state(soak->map, worker, key, &state);

        ck_assert_int_eq(wrong, 0);
        if (state != (is_absent(done) ? 0 : done) && state != (is_absent(begun) ? 0 : begun))
            ck_abort_msg("key %u of worker %u is in state %u, and not %u or %u", key, worker, state,
                begun, done);
        line->begun = line->done = state;
    }
}

static void check_log(struct soak *soak, uint32_t worker)
{
    struct ledger *ledger = soak->ledger;
    uint32_t begun = ledger->log_begun[worker], done = ledger->log_done[worker];
    uint64_t version;
    int n = read_log(soak->map, worker, &version);

    ck_assert_msg(n == (int)done || n == (int)begun,
        "the log of worker %u has %d bytes, and not %u or %u", worker, n, done, begun);
    ledger->log_begun[worker] = ledger->log_done[worker] = (uint32_t)n;
}

static void kill_worker(struct soak *soak, uint32_t worker)
{
    int status = kill_child(soak->pids[worker]);

    if (worker != ORPHAN || soak->serials[worker] % 4 != 0)
        map_bury(soak->map, 1 + worker, soak->serials[worker]);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
        "worker %u ended with status %x", worker, (unsigned)status);
    check_keys(soak, worker);
    check_log(soak, worker);
}

static void check_sums(struct soak *soak)
{
    for (uint32_t sum = 0; sum < SUMS; sum++) {
        int64_t least = soak->sums[sum], most = least, n;
        char name[16];
        size_t name_n = (size_t)snprintf(name, sizeof(name), "sum%u", sum);

        for (uint32_t worker = 0; worker < WORKERS; worker++) {
            least += soak->ledger->done[worker][sum];
            most += soak->ledger->begun[worker][sum];
            soak->ledger->done[worker][sum] = soak->ledger->begun[worker][sum] = 0;
        }
        ck_assert_int_eq(shm_map_add(soak->map, name, name_n, NOW, 0, &n), SHM_MAP_OK);
        ck_assert_int_ge(n, least);
        ck_assert_int_le(n, most);
        soak->sums[sum] = n;
    }
}

/* When nobody lives. */
static void check_all(struct soak *soak)
{
    uint32_t there = SUMS;

    map_bury(soak->map, 1 + ORPHAN, soak->serials[ORPHAN]);
    check_sums(soak);
    for (uint32_t worker = 0; worker < WORKERS; worker++)
        there += soak->ledger->log_done[worker] > 0;
    for (uint32_t worker = 0; worker < WORKERS; worker++)
        for (uint32_t key = 0; key < KEYS; key++)
            there += !is_absent(soak->ledger->lines[worker][key].done);
    shm_map_sweep(soak->map, NOW);
    ck_assert_uint_eq(shm_map_count(soak->map), there);
    map_check(soak->map);
    check_room(soak->map, CAPACITY);
}

/* Until the worker has done some work, less or more. */
static void let_work(struct soak *soak, uint32_t worker)
{
    uint64_t until = soak->ledger->steps[worker] + random_below(&soak->random, STEPS_MOST);
    time_t deadline = time(NULL) + TEST_PATIENCE_MS / 1000;

    while (soak->ledger->steps[worker] < until) {
        ck_assert_msg(time(NULL) < deadline, "worker %u does nothing", worker);
        sched_yield();
    }
}

START_TEST(a_killed_worker_takes_nothing_with_it)
{
    const char *wanted = getenv("SOAK_KILLS");
    unsigned kills = wanted != NULL ? (unsigned)strtoul(wanted, NULL, 10) : test_trials(KILLS);
    struct soak soak = { .map = map_create(&shapes[_i]), .random = random_seed() };
    int64_t added = 0;

    soak.ledger = shared_memory(sizeof(*soak.ledger));
    ck_assert_uint_gt(soak.map->table.shard_n, 1);
    while (soak.spawned < kills) {
        for (uint32_t worker = 0; worker < WORKERS; worker++)
            spawn_worker(&soak, worker);
        for (unsigned i = 0; i < ALL_AT_ONCE; i++) {
            uint32_t worker = random_below(&soak.random, WORKERS);

            let_work(&soak, worker);
            kill_worker(&soak, worker);
            spawn_worker(&soak, worker);
        }
        let_work(&soak, 0);
        for (uint32_t worker = 0; worker < WORKERS; worker++)
            kill_worker(&soak, worker);
        check_all(&soak);
    }
    for (uint32_t sum = 0; sum < SUMS; sum++)
        added += soak.sums[sum];
    ck_assert_uint_eq(soak.map->mended.emptied + soak.map->mended.rebuilt, 0);
    ck_assert_int_gt(added, kills); /* they have worked between the kills */
    map_destroy(&soak.map);
}
END_TEST

static void add_tests(TCase *tcase)
{
    if (getenv("SOAK_KILLS") != NULL)
        tcase_set_timeout(tcase, 1800);
    tcase_add_loop_test(tcase, a_killed_worker_takes_nothing_with_it, 0, 2);
}

TEST_MAIN("map_crash", add_tests)

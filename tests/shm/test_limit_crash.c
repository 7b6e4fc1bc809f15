/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers killed and stopped while they count sessions, SOAK_KILLS times. An independent count,
 * raised by a worker after the permission for a session, and lowered before the session is given
 * back, never exceeds the limit; and after all deaths the whole limit is there again. */
#include "shm/limits.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILLS 200
#define STOP_EVERY 20 /* kills between those with a worker stopped beyond the others' patience */
#define ALL_AT_ONCE 20
#define WORKERS 4
#define KEYS 3
#define MOST 5
#define HELD 8 /* sessions of a worker at once */
#define STEPS_MOST 400

static const struct shm_limit_shape shape = { .size = UINT64_C(2048) * SHM_LIMIT_UNIT };

struct ledger {
    _Atomic int32_t inside[WORKERS][KEYS];
    _Atomic uint64_t steps[WORKERS], admitted[WORKERS], refused[WORKERS];
    _Atomic uint32_t mended[WORKERS]; /* damage that a worker has found */
};

struct soak {
    void *memory;
    struct ledger *ledger;
    pid_t pids[WORKERS];
    struct slot_id ids[WORKERS];
    uint64_t random;
    unsigned kills;
};

struct session {
    struct shm_limit_count *count;
    uint32_t key;
};

static int32_t all_inside(struct ledger *ledger, uint32_t key)
{
    int32_t n = 0;

    for (uint32_t worker = 0; worker < WORKERS; worker++)
        n += ledger->inside[worker][key];
    return n;
}

static void work(struct soak *soak, uint32_t worker)
{
    struct shm_limit *limit = malloc(sizeof(*limit));
    uint64_t random = next_random(&soak->random) + worker;
    struct ledger *ledger = soak->ledger;
    struct session held[HELD];
    uint32_t n = 0, i;

    if (limit == NULL)
        _exit(9);
    shm_limit_open(limit, soak->memory, &shape, soak->ids[worker]);
    for (;; ledger->steps[worker]++) {
        uint32_t key = random_below(&random, KEYS);

        if (n < HELD && random_below(&random, 5) < 3) {
            if (shm_limit_take(limit, &key, sizeof(key), SECOND, MOST, &held[n].count) !=
                SHM_LIMIT_OK) {
                ledger->refused[worker]++;
                continue;
            }
            held[n++].key = key;
            ledger->admitted[worker]++;
            ledger->inside[worker][key]++;
            if (all_inside(ledger, key) > MOST)
                _exit(3);
        } else if (n > 0) {
            i = random_below(&random, n);
            ledger->inside[worker][held[i].key]--;
            shm_limit_give(limit, held[i].count, SECOND);
            held[i] = held[--n];
        }
        if (random_below(&random, 16) == 0)
            sched_yield();
        ledger->mended[worker] = limit->mended.rebuilt + limit->mended.recounted;
    }
}

static void spawn_worker(struct soak *soak, uint32_t worker)
{
    if (soak->pids[worker] != 0)
        return;
    soak->ids[worker] = (struct slot_id) { 1 + worker, soak->ids[worker].serial + 1 };
    limit_born(soak->memory, &shape, soak->ids[worker]);
    next_random(&soak->random);
    soak->pids[worker] = fork_child();
    if (soak->pids[worker] == 0)
        work(soak, worker);
}

/* The sessions of a worker end with the process, before the master hears of the death. */
static void kill_worker(struct soak *soak, uint32_t worker)
{
    int status = kill_child(soak->pids[worker]);

    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "worker %u: status %#x",
        worker, (unsigned)status);
    for (uint32_t key = 0; key < KEYS; key++)
        soak->ledger->inside[worker][key] = 0;
    limit_died(soak->memory, &shape, soak->ids[worker]);
    ck_assert_uint_eq(soak->ledger->mended[worker], 0);
    soak->pids[worker] = 0;
    soak->kills++;
}

static void let_work(struct soak *soak, uint32_t worker)
{
    uint64_t until = soak->ledger->steps[worker] + 1 + random_below(&soak->random, STEPS_MOST);
    time_t deadline = time(NULL) + TEST_PATIENCE_MS / 1000;

    while (soak->ledger->steps[worker] < until) {
        int status;

        ck_assert_msg(waitpid(soak->pids[worker], &status, WNOHANG) == 0,
            "worker %u has ended: status %#x", worker, (unsigned)status);
        ck_assert_msg(time(NULL) < deadline, "worker %u does nothing", worker);
        sched_yield();
    }
}

/* A worker possibly holding a lock, to be taken away. */
static void stop_worker(struct soak *soak, uint32_t worker)
{
    ck_assert_int_eq(kill(soak->pids[worker], SIGSTOP), 0);
    for (uint32_t other = 0; other < WORKERS; other++)
        if (other != worker)
            let_work(soak, other);
    ck_assert_int_eq(kill(soak->pids[worker], SIGCONT), 0);
    let_work(soak, worker);
}

/* Checks, when workers are dead, that all of the limit is there, and no memory is lost. */
static void check_room_left(struct soak *soak)
{
    struct shm_limit *limit = limit_open(soak->memory, &shape, 100, 1 + soak->kills);
    struct shm_limit_count *counts[KEYS][MOST], *none;

    for (uint32_t key = 0; key < KEYS; key++) {
        for (uint32_t i = 0; i < MOST; i++)
            ck_assert_int_eq(
                shm_limit_take(limit, &key, sizeof(key), SECOND, MOST, &counts[key][i]),
                SHM_LIMIT_OK);
        ck_assert_int_eq(
            shm_limit_take(limit, &key, sizeof(key), SECOND, MOST, &none), SHM_LIMIT_REACHED);
    }
    for (uint32_t key = 0; key < KEYS; key++)
        for (uint32_t i = 0; i < MOST; i++)
            shm_limit_give(limit, counts[key][i], SECOND);
    limit_sweep(limit, SECOND);
    limit_check(limit);
    ck_assert_uint_eq(limit_used(limit), 0);
    ck_assert_uint_eq(limit->mended.rebuilt + limit->mended.recounted + limit->mended.taken, 0);
    limit_died(soak->memory, &shape, limit->table.locker.id);
    limit_close(&limit);
}

START_TEST(a_limit_is_exact_whoever_is_killed)
{
    const char *wanted = getenv("SOAK_KILLS");
    unsigned kills = wanted != NULL ? (unsigned)strtoul(wanted, NULL, 10) : test_trials(KILLS);
    struct soak soak = { .memory = limit_memory(&shape), .random = random_seed() };
    uint64_t admitted = 0, refused = 0;

    soak.ledger = shared_memory(sizeof(*soak.ledger));
    while (soak.kills < kills) {
        for (uint32_t worker = 0; worker < WORKERS; worker++)
            spawn_worker(&soak, worker);
        for (unsigned i = 0; i < ALL_AT_ONCE; i++) {
            uint32_t worker = random_below(&soak.random, WORKERS);

            let_work(&soak, worker);
            if (i % STOP_EVERY == STOP_EVERY - 1)
                stop_worker(&soak, (worker + 1) % WORKERS);
            kill_worker(&soak, worker);
            spawn_worker(&soak, worker);
        }
        let_work(&soak, 0);
        for (uint32_t worker = 0; worker < WORKERS; worker++)
            kill_worker(&soak, worker);
        check_room_left(&soak);
    }
    for (uint32_t worker = 0; worker < WORKERS; worker++) {
        admitted += soak.ledger->admitted[worker];
        refused += soak.ledger->refused[worker];
    }
    ck_assert_uint_gt(admitted, kills);
    ck_assert_uint_gt(refused, kills);
    limit_unmap(soak.memory, &shape);
}
END_TEST

static void add_tests(TCase *tcase)
{
    if (getenv("SOAK_KILLS") != NULL)
        tcase_set_timeout(tcase, 1800);
    tcase_add_test(tcase, a_limit_is_exact_whoever_is_killed);
}

TEST_MAIN("limit_crash", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* A death after every instruction of a call. A child makes the call step by step, and after every
 * change the map is copied. A copy is the map after a kill of the child at the step, once the death
 * is known. All copies are looked at; and a few times the child is really killed. */
#include "shm/map_private.h"
#include "shm/memory.h"
#include "shm/siphash.h"
#include "support/test.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define COPIES 600
#define KEYS "abcdefghijklmnopqrstuvwxyz"
#define CHILD 1         /* slot and serial of a child */
#define CALL_MS 20      /* when the call is made; everything before is made at 1 */
#define KILL_STEPS 2000 /* children killed for real, for each call */

/* Calls as in map_call(). */
struct scenario {
    const char *name;
    uint32_t capacity;
    const char *before;
    const char *call;
};

static const struct scenario scenarios[] = {
    { "a first key", 6, "", "+a1" },
    { "a key of many", 6, "+a1+b2+c3+d4+e5", "+f6" },
    { "a key in the place of a deleted one", 6, "+a1+b2+c3-b", "+d4" },
    { "a key that expires", 6, "+a1+b2", "+c3!" },
    { "an existing key that expires", 6, "+a1+b2+c3", "+b3!" },
    { "an existing key", 6, "+a1+b2+c3+d4", "+b9" },
    { "an existing key of a full map", 3, "+a1+b2+c3", "+b9" },
    { "a replacement", 6, "+a1+b2+c3", "?b9" },
    { "a replacement of nothing", 6, "+a1+b2+c3", "?d9" },
    { "a first sum", 6, "+a1+b2", "&c7" },
    { "a sum", 6, "+a1+b2+c3", "&c4" },
    { "a first append", 6, "+a1+b2", "<c7" },
    { "an append", 6, "+a1+b2+c3", "<b9" },
    { "an append for which there is no room", 6, "+a1+b2<b3+c3", "<b9" },
    { "an append to an expired key", 6, "+a1+b2!+c3", "<b9" },
    { "an append in a full map", 3, "+a1+b2+c3", "<b9" },
    { "a deletion", 6, "+a1+b2+c3", "-b" },
    { "a deletion of all", 1, "+a1", "-a" },
    { "a deletion of an expired key", 6, "+a1+b2!+c3", "-b" },
    { "an expired key set again", 6, "+a1+b2!+c3", "+b4" },
    { "a key in the place of an expired one", 3, "+a1+b2!+c3", "+d4" },
    { "a key in the place of another shard's", 16,
        "+a1+b2!+c3+d4+e5+f6!+g7+h8!+i9+j1+k2+l3+m4+n5+o6+p7", "+q8" },
    { "a key in a map of two shards", 16, "+a1+b2+c3", "+d4" },
    { "a deletion in a map of two shards", 16, "+a1+b2+c3", "-b" },
    { "a sweep", 6, "+a1!+b2+c3!+d4", "~" },
    { "a count", 6, "+a1+b2", "#" },
    { "pages: an append", 3, "+a1+b2", "<b9" },
    { "pages: a deletion", 3, "+a1+b2", "-b" },
    { "a removal", 6, "+a1+b2+c3", "=b" },
    { "a removal of nothing", 6, "+a1+b2+c3", "=d" },
};

/* Values of the keys, of one number or two; 0: absent. */
struct state {
    int64_t values[sizeof(KEYS)];
};

struct copy {
    unsigned step;
    void *map;
};

struct stepping {
    const struct scenario *scenario;
    struct shm_map *map; /* shared with the calling child */
    struct shm_map *scratch;
    size_t size; /* bytes of the memory of each */
    struct state before, after;
    bool is_after; /* a copy was already in this state, and none may go back */
    void *start;   /* the map before the call */
    struct copy copies[COPIES];
    unsigned copy_n;
};

static struct state state_of(struct shm_map *map)
{
    struct state state = { { 0 } };

    for (int i = 0; KEYS[i] != 0; i++) {
        int64_t value[2] = { 0 };
        struct shm_map_item item = { .value = value, .room = sizeof(value) };
        enum shm_map_status status = shm_map_get(map, &KEYS[i], 1, CALL_MS, &item);

        test_require(status == SHM_MAP_ABSENT || status == SHM_MAP_OK);
        test_require(item.n % 8 == 0 && (item.n > 0) == (status == SHM_MAP_OK));
        state.values[i] = value[0] + 1000 * value[1];
    }
    return state;
}

static uint32_t keys_in(const struct state *state)
{
    uint32_t n = 0;

    for (int i = 0; KEYS[i] != 0; i++)
        n += state->values[i] != 0;
    return n;
}

static bool same(const struct state *a, const struct state *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* A call leaves the state before or after it, and every entry is still of use. */
static void check_map(struct stepping *stepping, struct shm_map *map)
{
    struct state state = state_of(map), again;
    uint32_t capacity = stepping->scenario->capacity;

    test_require(same(&state, stepping->is_after ? &stepping->after : &stepping->before) ||
                 same(&state, &stepping->after));
    if (!same(&stepping->before, &stepping->after) && same(&state, &stepping->after))
        stepping->is_after = true;
    shm_map_sweep(map, CALL_MS);
    ck_assert_uint_eq(shm_map_count(map), keys_in(&state));
    map_check(map);
    again = state_of(map);
    test_require(same(&state, &again));
    check_room(map, capacity);
    for (int i = 0; KEYS[i] != 0; i++)
        if (state.values[i] != 0)
            test_require(shm_map_append(map, &KEYS[i], 1, CALL_MS, NULL, 0, 0) == SHM_MAP_OK);
    for (int i = 0; KEYS[i] != 0; i++)
        if (state.values[i] != 0)
            test_require(shm_map_delete(map, &KEYS[i], 1, CALL_MS) == SHM_MAP_OK);
    ck_assert_uint_eq(shm_map_count(map), 0);
    check_room(map, capacity);
    test_require(map->mended.emptied + map->mended.rebuilt + map->mended.taken == 0);
}

/* For the handler of a signal, which has no argument. */
static struct stepping *stepped;

/* In the child, at the call's first store into the map. */
static void allow_stores(int number)
{
    (void)number;
    mprotect(stepped->map->header, stepped->size, PROT_READ | PROT_WRITE);
}

static void make_stepped_call(struct stepping *stepping, const char *call)
{
    struct sigaction action = { .sa_handler = allow_stores };

    stepped = stepping;
    map_join(stepping->map, CHILD, CHILD);
    sigaction(SIGSEGV, &action, NULL);
    mprotect(stepping->map->header, stepping->size, PROT_READ);
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    map_call(stepping->map, call, CALL_MS);
    raise(SIGUSR1); /* the call has returned */
}

/* The signal of the child's stop. */
static int run_steps(pid_t pid, enum __ptrace_request request, int number)
{
    int status;

    test_require(ptrace(request, pid, NULL, (long)number) == 0);
    test_require(waitpid(pid, &status, 0) == pid);
    test_require(WIFSTOPPED(status));
    return WSTOPSIG(status);
}

/* A child about to enter its handler, and then to change the map for the first time. */
static pid_t fork_stepped(struct stepping *stepping, const char *call)
{
    pid_t pid = fork_child();
    int status;

    if (pid == 0)
        make_stepped_call(stepping, call);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    ck_assert_int_eq(run_steps(pid, PTRACE_CONT, 0), SIGSEGV);
    ck_assert_int_eq(run_steps(pid, PTRACE_SINGLESTEP, SIGSEGV), SIGTRAP);
    return pid;
}

/* False when the call has returned. */
static bool step_child(pid_t pid)
{
    int number = run_steps(pid, PTRACE_SINGLESTEP, 0);

    test_require(number == SIGTRAP || number == SIGUSR1);
    return number == SIGTRAP;
}

static void keep_copy(struct stepping *stepping, unsigned at)
{
    struct copy *copy = &stepping->copies[stepping->copy_n++];

    test_require(stepping->copy_n <= COPIES);
    copy->step = at;
    copy->map = malloc(stepping->size);
    test_require(copy->map != NULL);
    memcpy(copy->map, stepping->map->header, stepping->size);
}

/* Makes the call, from the current map, and keeps a copy of every state of the map within the
 * call. */
static void make_copies(struct stepping *stepping, const char *call)
{
    void *last = malloc(stepping->size);
    pid_t pid = fork_stepped(stepping, call);

    ck_assert_ptr_nonnull(last);
    memcpy(last, stepping->map->header, stepping->size);
    for (unsigned at = 1; step_child(pid); at++) {
        if (memcmp(last, stepping->map->header, stepping->size) == 0)
            continue;
        memcpy(last, stepping->map->header, stepping->size);
        keep_copy(stepping, at);
    }
    kill_child(pid);
    free(last);
}

static void free_copies(struct stepping *stepping)
{
    for (unsigned i = 0; i < stepping->copy_n; i++)
        free(stepping->copies[i].map);
    stepping->copy_n = 0;
}

/* Restores the map after a death at the copy's point. */
static void load_copy(struct stepping *stepping, struct shm_map *map, const struct copy *copy)
{
    memcpy(map->header, copy->map, stepping->size);
    map_join(map, 0, 1); /* looks through the map anew, and finds no damage */
    map_bury(map, CHILD, CHILD);
}

/* A reader of an entry taken out of a chain by the dead worker must notice the new use. */
static void check_readers(struct shm_map *map)
{
    uint64_t sequences[TABLE_SHARDS_MAX];
    bool left[TABLE_SHARDS_MAX];

    for (uint32_t i = 0; i < map->table.shard_n; i++) {
        left[i] = map->shards[i].lock.word != 0;
        sequences[i] = map->shards[i].sequence;
    }
    shm_map_count(map);
    for (uint32_t i = 0; i < map->table.shard_n; i++)
        test_require(!left[i] || map->shards[i].sequence > sequences[i]);
}

/* A writer to one shard finds all room, also the room left in further shards. */
static void check_room_from(struct shm_map *map, uint32_t shard, uint32_t capacity)
{
    struct state state = state_of(map);
    uint32_t n = keys_in(&state);

    for (uint32_t i = 0;; i++) {
        uint32_t of = table_shard_of(&map->table, siphash(map->seed, &i, sizeof(i)));
        enum shm_map_status status;

        if (of != shard)
            continue;
        status = shm_map_set(map, &i, sizeof(i), CALL_MS, NULL, 0, 0, NULL);
        if (status != SHM_MAP_OK)
            break;
        test_require(++n <= capacity);
    }
    ck_assert_uint_eq(n, capacity);
}

static void check_copies(struct stepping *stepping)
{
    struct shm_map *map = stepping->scratch;

    for (unsigned i = 0; i < stepping->copy_n; i++) {
        load_copy(stepping, map, &stepping->copies[i]);
        check_map(stepping, map);
        load_copy(stepping, map, &stepping->copies[i]);
        check_readers(map);
        for (uint32_t shard = 0; shard < map->table.shard_n; shard++) {
            load_copy(stepping, map, &stepping->copies[i]);
            check_room_from(map, shard, stepping->scenario->capacity);
        }
    }
}

/* From the map after a death: the repairing worker dies as well. */
static void check_repair(struct stepping *stepping, const struct copy *left)
{
    struct stepping within = *stepping;
    struct state state;

    within.copy_n = 0;
    within.is_after = false;
    load_copy(&within, within.map, left);
    state = state_of(within.map);
    within.before = within.after = state;
    make_copies(&within, "#");
    check_copies(&within);
    free_copies(&within);
}

static void check_kill(struct stepping *stepping, unsigned steps)
{
    pid_t pid;

    memcpy(stepping->map->header, stepping->start, stepping->size);
    pid = fork_stepped(stepping, stepping->scenario->call);
    for (unsigned i = 0; i < steps; i++)
        test_require(step_child(pid));
    kill_child(pid);
    map_bury(stepping->map, CHILD, CHILD);
    stepping->is_after = false;
    check_map(stepping, stepping->map);
}

/* Stepping is several times as fast when both are on one processor. */
static void stay_on_this_processor(void)
{
    cpu_set_t here;

    CPU_ZERO(&here);
    CPU_SET((size_t)sched_getcpu(), &here);
    sched_setaffinity(0, sizeof(here), &here);
}

static void set_up(struct stepping *stepping, const struct scenario *scenario)
{
    const struct shm_map_shape shape = { scenario->capacity, 8, 16,
        strncmp(scenario->name, "pages", 5) == 0 ? scenario->capacity + 2 : 0 };
    const char *text = scenario->before;

    memset(stepping, 0, sizeof(*stepping));
    stay_on_this_processor();
    stepping->scenario = scenario;
    stepping->size = shm_map_kind.size(&shape);
    stepping->map = map_create(&shape);
    stepping->scratch = map_create(&shape);
    stepping->start = malloc(stepping->size);
    ck_assert_ptr_nonnull(stepping->start);
    stepping->map->header->seed[0] = 1; /* the same chains each time */
    stepping->map->header->seed[1] = 2;
    map_join(stepping->map, 0, 1);
    while (*text != 0)
        text = map_call(stepping->map, text, 1);
    memcpy(stepping->start, stepping->map->header, stepping->size);
    memcpy(stepping->scratch->header, stepping->map->header, stepping->size);
    map_join(stepping->scratch, 0, 1);
    stepping->before = state_of(stepping->map);
    map_call(stepping->scratch, scenario->call, CALL_MS);
    stepping->after = state_of(stepping->scratch);
}

static void tear_down(struct stepping *stepping)
{
    free_copies(stepping);
    free(stepping->start);
    map_destroy(&stepping->map);
    map_destroy(&stepping->scratch);
}

/* A call is done, or not, wherever a death ends the call; and so is the repair. */
static void check_deaths(struct stepping *stepping)
{
    unsigned every = getenv("SOAK_KILLS") != NULL ? 1 : stepping->copy_n / 2;

    check_copies(stepping);
    ck_assert(stepping->is_after || same(&stepping->before, &stepping->after));
    for (unsigned i = every / 2; i < stepping->copy_n; i += every)
        check_repair(stepping, &stepping->copies[i]);
}

/* A kill leaves what the copy of its step has. */
static void check_kills(struct stepping *stepping)
{
    unsigned every, steps = 0;

    for (unsigned i = 0; i < stepping->copy_n; i++)
        steps += stepping->copies[i].step;
    every = getenv("SOAK_KILLS") != NULL ? 1 : steps / test_trials(KILL_STEPS) + 1;
    for (unsigned i = every / 2; i < stepping->copy_n; i += every)
        check_kill(stepping, stepping->copies[i].step);
}

/* The steps are made once for all checks: they take most of the time. */
START_TEST(a_call_is_done_or_not_wherever_it_ends)
{
    struct stepping stepping;

    if (!test_has_turn((unsigned)_i, 3))
        return;
    set_up(&stepping, &scenarios[_i]);
    make_copies(&stepping, stepping.scenario->call);
    ck_assert_uint_ge(stepping.copy_n, 2); /* a lock is taken and given back */
    check_deaths(&stepping);
    check_kills(&stepping);
    tear_down(&stepping);
}
END_TEST

/* Takes all locks of the map, and uses the available entries. */
static void use_map(struct shm_map *map)
{
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t key = i % 8;

        map->table.locker.patience = 1; /* no holder is waited for here */
        map->table.locker.impatient_at = map->table.locker.acquired;
        if (i < 8)
            shm_map_set(map, &key, sizeof(key), CALL_MS, &key, sizeof(key), 0, NULL);
        else
            shm_map_delete(map, &key, sizeof(key), CALL_MS);
    }
}

/* A child stopped after so many steps is robbed of its locks, and goes on. Returns whether its call
 * was done, and nothing else; damage can be mended. */
static bool check_robbery(struct stepping *stepping, unsigned steps, unsigned *taken)
{
    struct shm_map *map = stepping->map;
    struct state state;
    pid_t pid;

    memcpy(map->header, stepping->start, stepping->size);
    map_join(map, 0, 1);
    pid = fork_stepped(stepping, stepping->scenario->call);
    while (steps-- > 0)
        test_require(step_child(pid));
    use_map(map);
    test_require(run_steps(pid, PTRACE_CONT, 0) == SIGUSR1);
    kill_child(pid);
    map_bury(map, CHILD, CHILD);
    *taken += map->mended.taken;
    state = state_of(map);
    shm_map_pool_suspect(map, SHM_MAP_SUSPECT);
    shm_map_sweep(map, CALL_MS);
    shm_map_pool_audit(map);
    map_check(map);
    return map->mended.emptied + map->mended.rebuilt == 0 && same(&state, &stepping->after);
}

/* A store is the last store of the child, or the next, with a lock checked before. */
START_TEST(a_robbed_process_does_its_call_again)
{
    unsigned every = getenv("SOAK_KILLS") != NULL ? 1 : 5, undone = 0, taken = 0;
    struct stepping stepping;

    if (!test_has_turn((unsigned)_i, 3))
        return;
    set_up(&stepping, &scenarios[_i]);
    make_copies(&stepping, stepping.scenario->call);
    for (unsigned i = (unsigned)_i % every; i < 2 * stepping.copy_n; i += every)
        undone += !check_robbery(&stepping, stepping.copies[i / 2].step - i % 2, &taken);
    ck_assert_uint_gt(taken, 0);
    /* entries found free may be taken: then the map is full for the caller, as for others */
    ck_assert_uint_le(undone, stepping.scenario->capacity == 3 ? stepping.copy_n / 2 : 0);
    tear_down(&stepping);
}
END_TEST

static void add_tests(TCase *tcase)
{
    const int n = (int)countof(scenarios);

    if (getenv("SOAK_KILLS") != NULL)
        tcase_set_timeout(tcase, 600);
    tcase_add_loop_test(tcase, a_call_is_done_or_not_wherever_it_ends, 0, n);
    tcase_add_loop_test(tcase, a_robbed_process_does_its_call_again, 0, n);
}

TEST_MAIN("map_steps", add_tests)

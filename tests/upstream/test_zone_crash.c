/* SPDX-License-Identifier: BSD-2-Clause */
/* Worker processes killed while they choose servers of a zone, also with the group's lock held. An
 * independent count of sessions, raised by a worker after the choice of a server, and lowered
 * before the end of the session, never exceeds max_conns; and once the master has noted the deaths,
 * the zone's numbers equal the remaining sessions. */
#include "shm/memory.h"
#include "support/wait.h"
#include "upstream/zoned.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLS 60
#define WORKERS 3
#define SERVERS 2
#define MOST 3 /* sessions of a server */
#define HELD 4 /* sessions of a worker at once */
#define STEPS_MOST 200

/* Numbers that workers tell the test. */
struct ledger {
    _Atomic int32_t inside[WORKERS][SERVERS];
    _Atomic uint32_t ends[SERVERS]; /* counted between the two ends of a session */
    _Atomic uint64_t steps[WORKERS], ended[WORKERS], refused[WORKERS];
    _Atomic uint32_t asked;             /* odd: workers are to stand still, and answer with it */
    _Atomic uint32_t answered[WORKERS]; /* the last odd number that was seen */
};

struct crash {
    struct zoned zoned;
    struct zoned_worker own; /* the test's handle, to keep the entries in use */
    struct ledger *ledger;
    pid_t pids[WORKERS];
    struct slot_id ids[WORKERS];
    uint64_t random;
    unsigned kills;
};

static void add_servers(struct group *group)
{
    for (int i = 0; i < SERVERS; i++)
        group_add(group, 1)->max_conns = MOST;
}

static void crash_start(struct crash *crash)
{
    memset(crash, 0, sizeof(*crash));
    crash->random = random_seed();
    crash->ledger = shared_memory(sizeof(*crash->ledger));
    zoned_start(&crash->zoned, 8, NULL);
    add_servers(zoned_begin(&crash->own, &crash->zoned, 0, 1));
    group_open(crash->own.group);
}

static void crash_stop(struct crash *crash)
{
    zoned_end(&crash->own);
    zoned_stop(&crash->zoned);
    ck_assert_int_eq(munmap(crash->ledger, sizeof(*crash->ledger)), 0);
}

/* ---- A worker's process ---- */

/* Opens the zone as a forked worker does. */
static struct group *enter(struct crash *crash, struct upstream_zone *zone, struct slot_id id)
{
    struct group *group = group_create();

    if (zones_enter(&crash->zoned.declared.zones, id, &crash->zoned.declared.log.log) == -1)
        _exit(2);
    *zone = *crash->zoned.zone;
    group->upstream.zone = zone;
    group->upstreams.id = id;
    group->upstreams.log = &crash->zoned.declared.log.log;
    add_servers(group);
    group_open(group);
    return group;
}

/* Adds up anew when a session ends meanwhile: the successor would be counted, too. */
static int32_t all_inside(const struct ledger *ledger, unsigned server)
{
    uint32_t ends;
    int32_t n;

    do {
        ends = ledger->ends[server];
        n = 0;
        for (unsigned worker = 0; worker < WORKERS; worker++)
            n += ledger->inside[worker][server];
    } while (ledger->ends[server] != ends);
    return n;
}

/* Begins a session, if a server has room; false: none has. */
static bool begin_session(
    struct ledger *ledger, unsigned worker, struct group *group, struct choice *choice)
{
    unsigned server;

    group_begin(group, choice);
    if (choice_next(choice) != FB_CHOICE_SERVER) {
        ledger->refused[worker]++;
        return false;
    }
    server = (unsigned)(choice->peer->server - group->servers);
    ledger->inside[worker][server]++;
    if (all_inside(ledger, server) > MOST)
        _exit(3);
    return true;
}

static void end_session(
    struct ledger *ledger, unsigned worker, const struct group *group, struct choice *choice)
{
    ptrdiff_t server = choice->peer->server - group->servers;

    ledger->inside[worker][server]--;
    ledger->ends[server]++;
    choice_end(choice, FB_TRY_SERVED);
    ledger->ended[worker]++;
}

/* Stands still as long as asked for by the test. */
static void stand_still(struct ledger *ledger, unsigned worker)
{
    uint32_t asked = ledger->asked;

    if (asked % 2 == 0)
        return;
    ledger->answered[worker] = asked;
    while (ledger->asked == asked)
        sched_yield();
}

static void work(struct crash *crash, unsigned worker)
{
    struct ledger *ledger = crash->ledger;
    uint64_t random = crash->random + worker;
    struct choice held[HELD];
    struct upstream_zone zone;
    struct group *group = enter(crash, &zone, crash->ids[worker]);
    unsigned n = 0;

    for (;; ledger->steps[worker]++) {
        stand_still(ledger, worker);
        if (n < HELD && random_below(&random, 5) < 3)
            n += begin_session(ledger, worker, group, &held[n]);
        else if (n > 0)
            end_session(ledger, worker, group, &held[--n]);
    }
}

/* Begins a session, and stays in the middle of the choice for another. */
static void hold_lock(struct crash *crash)
{
    struct zone_hold hold = { .lock = NULL };
    struct upstream_zone zone;
    struct group *group = enter(crash, &zone, crash->ids[0]);
    struct choice choice;

    if (!begin_session(crash->ledger, 0, group, &choice))
        _exit(4);
    upstream_zone_lock(&zone, group->upstream.peers->lock, &hold);
    crash->ledger->steps[0]++;
    for (;;)
        pause();
}

/* ---- The test, as the master ---- */

static void spawn_worker(struct crash *crash, unsigned worker, bool holds)
{
    if (crash->pids[worker] != 0)
        return;
    crash->ids[worker] = (struct slot_id) { 1 + worker, crash->ids[worker].serial + 1 };
    zones_slot_acquired(&crash->zoned.declared.zones, crash->ids[worker]);
    next_random(&crash->random);
    crash->pids[worker] = fork_child();
    if (crash->pids[worker] == 0 && holds)
        hold_lock(crash);
    else if (crash->pids[worker] == 0)
        work(crash, worker);
}

/* The sessions of a worker end with the process, before the master hears of the death. */
static void kill_worker(struct crash *crash, unsigned worker)
{
    int status = kill_child(crash->pids[worker]);

    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "worker %u: status %#x",
        worker, (unsigned)status);
    for (unsigned server = 0; server < SERVERS; server++) {
        crash->ledger->inside[worker][server] = 0;
        crash->ledger->ends[server]++;
    }
    crash->pids[worker] = 0;
    crash->kills++;
}

static void bury_worker(struct crash *crash, unsigned worker)
{
    zones_slot_released(&crash->zoned.declared.zones, crash->ids[worker]);
}

static bool lives(const struct crash *crash, unsigned worker)
{
    int status;

    ck_assert_msg(waitpid(crash->pids[worker], &status, WNOHANG) == 0,
        "worker %u has ended: status %#x", worker, (unsigned)status);
    return true;
}

static void let_work(struct crash *crash, unsigned worker)
{
    uint64_t until = crash->ledger->steps[worker] + 1 + random_below(&crash->random, STEPS_MOST);

    WAIT_FOR(lives(crash, worker) && crash->ledger->steps[worker] >= until);
}

/* Checks the zone's numbers while no worker changes them. */
static void check_numbers(struct crash *crash)
{
    struct ledger *ledger = crash->ledger;
    uint32_t asked = ++ledger->asked;

    for (unsigned worker = 0; worker < WORKERS; worker++)
        WAIT_FOR(crash->pids[worker] == 0 ||
                 (lives(crash, worker) && ledger->answered[worker] == asked));
    for (unsigned i = 0; i < SERVERS; i++)
        ck_assert_int_eq(peer_conns(group_peer(crash->own.group, i)), all_inside(ledger, i));
    ledger->asked++;
}

/* A killed worker may have ended a session without a record. */
static void check_sessions(const struct crash *crash)
{
    uint64_t ended = 0, refused = 0, counted = 0;

    for (unsigned worker = 0; worker < WORKERS; worker++) {
        ended += crash->ledger->ended[worker];
        refused += crash->ledger->refused[worker];
    }
    for (unsigned i = 0; i < SERVERS; i++)
        counted += group_peer(crash->own.group, i)->state->sessions;
    ck_assert_uint_ge(counted, ended);
    ck_assert_uint_le(counted, ended + crash->kills);
    ck_assert_uint_gt(ended, 0);
    ck_assert_uint_gt(refused, 0);
}

START_TEST(numbers_are_exact_whoever_is_killed)
{
    struct crash crash;

    crash_start(&crash);
    while (crash.kills < KILLS) {
        unsigned worker = random_below(&crash.random, WORKERS);

        for (unsigned i = 0; i < WORKERS; i++)
            spawn_worker(&crash, i, false);
        if (random_below(&crash.random, 4) != 0) /* perhaps it joins meanwhile */
            let_work(&crash, worker);
        kill_worker(&crash, worker);
        if (crash.kills % 2 == 0) /* some go on before the death is noted */
            let_work(&crash, (worker + 1) % WORKERS);
        bury_worker(&crash, worker);
        check_numbers(&crash);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        if (crash.pids[i] != 0) {
            kill_worker(&crash, i);
            bury_worker(&crash, i);
        }
    check_numbers(&crash);
    check_sessions(&crash);
    ck_assert_int_ne(group_session(crash.own.group, FB_TRY_SERVED), '-');
    ck_assert_uint_eq(crash.own.zone.table.locker.taken, 0);
    crash_stop(&crash);
}
END_TEST

/* The lock of a worker that was killed is free at once when the death is noted, and else is taken
 * from it. */
START_TEST(worker_is_killed_with_the_lock)
{
    bool is_noted = _i == 0;
    struct crash crash;

    crash_start(&crash);
    spawn_worker(&crash, 0, true);
    WAIT_FOR(lives(&crash, 0) && crash.ledger->steps[0] == 1);
    kill_worker(&crash, 0);
    if (is_noted)
        bury_worker(&crash, 0);
    group_expect(crash.own.group, "ba");
    ck_assert_uint_eq(crash.own.zone.table.locker.taken, is_noted ? 0 : 1);
    ck_assert_uint_eq(peer_conns(group_peer(crash.own.group, 0)), is_noted ? 0 : 1);
    if (!is_noted)
        bury_worker(&crash, 0);
    group_expect(crash.own.group, "baba");
    check_numbers(&crash);
    crash_stop(&crash);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, numbers_are_exact_whoever_is_killed);
    tcase_add_loop_test(tcase, worker_is_killed_with_the_lock, 0, 2);
}

TEST_MAIN("upstream zone_crash", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* "make soak": the scenarios at length. A line for each scenario, and an exit code. */
#include "daemon/daemon.h"
#include "daemon/hostile_seeds.h"
#include "daemon/soak_faults.h"
#include "daemon/soak_idle.h"
#include "daemon/soak_limits.h"
#include "daemon/soak_map.h"
#include "daemon/soak_scenarios.h"
#include "daemon/soak_transitions.h"

#define KILLS 200
#define RELOADS 100
#define TRANSITIONS 1000
#define UPGRADES 50
#define MAP_KILLS 10000
#define SEEDS 100
#define SEED_RUNS 10
#define TIMEOUT_S 3600 /* waits have deadlines; a loaded machine is slow */

START_TEST(kills)
{
    soak_kills(&soak_modes[_i], KILLS);
}
END_TEST

START_TEST(reloads)
{
    soak_reloads(&soak_modes[_i], RELOADS);
}
END_TEST

START_TEST(kills_in_reloads)
{
    soak_kills_in_reloads(&soak_modes[_i], RELOADS);
}
END_TEST

START_TEST(broken_reloads)
{
    soak_broken_reloads(&soak_modes[_i], RELOADS);
}
END_TEST

/* From every way of accepting to every way, then in a fixed way; then without sessions in old
 * generations, and thus shared memory between them. */
START_TEST(transitions)
{
    static const struct soak_transitions_plan plans[] = {
        { TRANSITIONS, 2000, 500, -1 },
        { TRANSITIONS, 2000, 500, 0 },
        { TRANSITIONS, 2000, 500, 1 },
        { TRANSITIONS, 2000, 500, 2 },
        { TRANSITIONS, 2000, 0, -1 },
    };

    soak_transitions(&plans[_i]);
}
END_TEST

START_TEST(upgrades)
{
    soak_upgrades(&soak_modes[_i], UPGRADES);
}
END_TEST

START_TEST(idle_sessions)
{
    static const struct soak_idle_plan plan = { 20000, 30, 5000, true };

    soak_idle(&plan);
}
END_TEST

START_TEST(kills_within_updates)
{
    soak_map_kills(MAP_KILLS);
}
END_TEST

START_TEST(limits)
{
    static const struct soak_limits_plan plan = { 8, 100, 5000, 500 };

    soak_limits(&plan);
}
END_TEST

/* A hundred at a time: a failure does not end the later tests. */
START_TEST(random_writes)
{
    const struct hostile_plan plan = { 1 + (unsigned)_i * SEEDS, SEEDS, 4, 400, 1000 };

    hostile_seeds(&plan);
}
END_TEST

START_TEST(faults)
{
    const struct soak_faults_plan plan = { _i / 2, 15000, 500, _i % 2 == 0 };

    soak_faults(&plan);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_set_timeout(tcase, TIMEOUT_S);
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, kills, 0, SOAK_MODES);
    tcase_add_loop_test(tcase, reloads, 0, SOAK_MODES);
    tcase_add_loop_test(tcase, kills_in_reloads, 0, SOAK_MODES);
    tcase_add_loop_test(tcase, broken_reloads, 0, SOAK_MODES);
    tcase_add_loop_test(tcase, transitions, 0, 2 + SOAK_TRANSITIONS_MODES);
    tcase_add_test(tcase, idle_sessions);
    tcase_add_loop_test(tcase, upgrades, 0, SOAK_MODES);
    tcase_add_test(tcase, kills_within_updates);
    tcase_add_test(tcase, limits);
    tcase_add_loop_test(tcase, random_writes, 0, SEED_RUNS);
    tcase_add_loop_test(tcase, faults, 0, 2 * SOAK_FAULTS);
}

TEST_MAIN("soak", add_tests)

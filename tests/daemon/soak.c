/* SPDX-License-Identifier: BSD-2-Clause */
/* "make soak": the scenarios at length. One line each, and an exit code. */
#include "daemon/daemon.h"
#include "daemon/idle.h"
#include "daemon/map_kills.h"
#include "daemon/scenario.h"
#include "daemon/transitions.h"

#define KILLS 200
#define RELOADS 100
#define TRANSITIONS 1000
#define UPGRADES 50
#define MAP_KILLS 10000
#define TIMEOUT_S 600

START_TEST(kills)
{
    scenario_kills(&scenario_ways[_i], KILLS);
}
END_TEST

START_TEST(reloads)
{
    scenario_reloads(&scenario_ways[_i], RELOADS);
}
END_TEST

START_TEST(kills_in_reloads)
{
    scenario_kills_in_reloads(&scenario_ways[_i], RELOADS);
}
END_TEST

START_TEST(broken_reloads)
{
    scenario_broken_reloads(&scenario_ways[_i], RELOADS);
}
END_TEST

/* From each way of accepting to each, then with one way; then without sessions that keep old generations,
 * and so pieces between them. */
START_TEST(transitions)
{
    static const struct transitions plans[] = {
        { TRANSITIONS, 2000, 500, -1 },
        { TRANSITIONS, 2000, 500, 0 },
        { TRANSITIONS, 2000, 500, 1 },
        { TRANSITIONS, 2000, 500, 2 },
        { TRANSITIONS, 2000, 0, -1 },
    };

    transitions_run(&plans[_i]);
}
END_TEST

START_TEST(upgrades)
{
    scenario_upgrades(&scenario_ways[_i], UPGRADES);
}
END_TEST

START_TEST(idle_sessions)
{
    static const struct idle plan = { 20000, 30, 5000, true };

    idle_run(&plan);
}
END_TEST

START_TEST(kills_within_updates)
{
    map_kills(MAP_KILLS);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_set_timeout(tcase, TIMEOUT_S);
    keeper_fixture(tcase);
    tcase_add_loop_test(tcase, kills, 0, SCENARIO_WAYS);
    tcase_add_loop_test(tcase, reloads, 0, SCENARIO_WAYS);
    tcase_add_loop_test(tcase, kills_in_reloads, 0, SCENARIO_WAYS);
    tcase_add_loop_test(tcase, broken_reloads, 0, SCENARIO_WAYS);
    tcase_add_loop_test(tcase, transitions, 0, 2 + TRANSITIONS_WAYS);
    tcase_add_test(tcase, idle_sessions);
    tcase_add_loop_test(tcase, upgrades, 0, SCENARIO_WAYS);
    tcase_add_test(tcase, kills_within_updates);
}

TEST_MAIN("soak", add_tests)

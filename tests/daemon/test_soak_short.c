/* SPDX-License-Identifier: BSD-2-Clause */
/* What soak.c does for long, in a few seconds. */
#include "daemon/daemon.h"
#include "daemon/idle.h"
#include "daemon/map_kills.h"
#include "daemon/scenario.h"
#include "daemon/transitions.h"

START_TEST(kills)
{
    scenario_kills(&scenario_ways[_i], 20);
}
END_TEST

START_TEST(reloads)
{
    scenario_reloads(&scenario_ways[_i], 10);
}
END_TEST

START_TEST(kills_in_reloads)
{
    scenario_kills_in_reloads(&scenario_ways[_i], 10);
}
END_TEST

START_TEST(broken_reloads)
{
    scenario_broken_reloads(&scenario_ways[_i], 12);
}
END_TEST

START_TEST(transitions)
{
    static const struct transitions plan = { 20, 500, 50, -1 };

    transitions_run(&plan);
}
END_TEST

START_TEST(upgrades)
{
    scenario_upgrades(&scenario_ways[_i], 3);
}
END_TEST

START_TEST(idle_sessions)
{
    static const struct idle plan = { 400, 6, 500, false };

    idle_run(&plan);
}
END_TEST

START_TEST(kills_within_updates)
{
    map_kills(60);
}
END_TEST

static void add_tests(TCase *tcase)
{
    keeper_fixture(tcase);
    tcase_add_loop_test(tcase, kills, 0, SCENARIO_WAYS);
    tcase_add_loop_test(tcase, reloads, 0, SCENARIO_WAYS);
    tcase_add_loop_test(tcase, kills_in_reloads, 0, SCENARIO_WAYS);
    tcase_add_loop_test(tcase, broken_reloads, 0, SCENARIO_WAYS);
    tcase_add_test(tcase, transitions);
    tcase_add_test(tcase, idle_sessions);
    tcase_add_loop_test(tcase, upgrades, 0, SCENARIO_WAYS);
    tcase_add_test(tcase, kills_within_updates);
}

TEST_MAIN("soak_short", add_tests)

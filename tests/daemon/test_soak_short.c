/* SPDX-License-Identifier: BSD-2-Clause */
/* The scenarios of soak.c, in a few seconds; a third of them, but in a long run. */
#include "daemon/daemon.h"
#include "daemon/soak_idle.h"
#include "daemon/soak_limits.h"
#include "daemon/soak_map.h"
#include "daemon/soak_scenarios.h"
#include "daemon/soak_transitions.h"

START_TEST(kills)
{
    soak_kills(&soak_modes[_i], test_trials(20));
}
END_TEST

START_TEST(reloads)
{
    soak_reloads(&soak_modes[_i], test_trials(10));
}
END_TEST

START_TEST(kills_in_reloads)
{
    soak_kills_in_reloads(&soak_modes[_i], test_trials(10));
}
END_TEST

START_TEST(broken_reloads)
{
    soak_broken_reloads(&soak_modes[_i], test_trials(12));
}
END_TEST

START_TEST(transitions)
{
    const struct soak_transitions_plan plan = { test_trials(20), 500, 50, -1 };

    soak_transitions(&plan);
}
END_TEST

START_TEST(upgrades)
{
    soak_upgrades(&soak_modes[_i], test_trials(3));
}
END_TEST

START_TEST(idle_sessions)
{
    const struct soak_idle_plan plan = { 400, test_trials(6), 500, false };

    soak_idle(&plan);
}
END_TEST

START_TEST(kills_within_updates)
{
    soak_map_kills(test_trials(60));
}
END_TEST

START_TEST(limits)
{
    static const struct soak_limits_plan plan = { 8, 12, 300, 40 };

    soak_limits(&plan);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, kills, 0, SOAK_MODES);
    tcase_add_loop_test(tcase, reloads, 0, SOAK_MODES);
    tcase_add_loop_test(tcase, kills_in_reloads, 0, SOAK_MODES);
    tcase_add_loop_test(tcase, broken_reloads, 0, SOAK_MODES);
    tcase_add_test(tcase, transitions);
    tcase_add_test(tcase, idle_sessions);
    tcase_add_loop_test(tcase, upgrades, 0, SOAK_MODES);
    tcase_add_test(tcase, kills_within_updates);
    tcase_add_test(tcase, limits);
}

TEST_MAIN("soak_short", add_tests)

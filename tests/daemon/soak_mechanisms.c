/* SPDX-License-Identifier: BSD-2-Clause */
/* The second part of "make soak": the scenarios of soak.c with changes of workers, in short, under
 * every event mechanism of the binary and the kernel, and in every way to share a port. A line for
 * every run, and an exit code. */
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"
#include "daemon/soak_scenarios.h"

#include <stdio.h>

#define KILLS 40
#define RELOADS 20
#define UPGRADES 5

struct under {
    char name[64], events[64];
    struct soak_mode mode;
};

static const struct soak_mode *mode_under(struct under *under, int i)
{
    const struct soak_mode *mode = &soak_modes[i % SOAK_MODES];
    const char *mechanism = mechanisms_name(i / SOAK_MODES);

    snprintf(under->name, sizeof(under->name), "%s, %s", mechanism, mode->name);
    snprintf(under->events, sizeof(under->events), "use %s; %s", mechanism, mode->events);
    under->mode = (struct soak_mode) { under->name, under->events, mode->parameter };
    return &under->mode;
}

START_TEST(kills)
{
    struct under under;

    soak_kills(mode_under(&under, _i), KILLS);
}
END_TEST

START_TEST(reloads)
{
    struct under under;

    soak_reloads(mode_under(&under, _i), RELOADS);
}
END_TEST

START_TEST(kills_in_reloads)
{
    struct under under;

    soak_kills_in_reloads(mode_under(&under, _i), RELOADS);
}
END_TEST

START_TEST(broken_reloads)
{
    struct under under;

    soak_broken_reloads(mode_under(&under, _i), RELOADS);
}
END_TEST

START_TEST(upgrades)
{
    struct under under;

    soak_upgrades(mode_under(&under, _i), UPGRADES);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int n = mechanisms_count() * SOAK_MODES;

    resources_fixture(tcase);
    tcase_add_loop_test(tcase, kills, 0, n);
    tcase_add_loop_test(tcase, reloads, 0, n);
    tcase_add_loop_test(tcase, kills_in_reloads, 0, n);
    tcase_add_loop_test(tcase, broken_reloads, 0, n);
    tcase_add_loop_test(tcase, upgrades, 0, n);
}

TEST_MAIN("soak_mechanisms", add_tests)

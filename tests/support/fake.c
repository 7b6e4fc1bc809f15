/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/fake.h"

#include "support/test.h"

struct sim *fake_sim;
struct mechanism fake_edge, fake_level;

static void fault(void *arg, const char *text)
{
    (void)arg;
    ck_abort_msg("%s", text);
}

void fake_start(void)
{
    fake_sim = sim_create();
    sim_on_fault(fake_sim, fault, NULL);
    sim_set_auto(fake_sim, true);
    fake_edge = *sim_edge(fake_sim);
    fake_level = *sim_level(fake_sim);
}

void fake_stop(void)
{
    sim_destroy(&fake_sim);
}

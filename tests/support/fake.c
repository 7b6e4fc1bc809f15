/* SPDX-License-Identifier: BSD-2-Clause */
#include "support/fake.h"

#include "support/test.h"

struct fb_sim *fake_sim;
struct fb_mechanism fake_edge, fake_level;

static void fault(void *arg, const char *text)
{
    (void)arg;
    ck_abort_msg("%s", text);
}

void fake_start(void)
{
    fake_sim = fb_sim_create();
    fb_sim_on_fault(fake_sim, fault, NULL);
    fb_sim_set_auto(fake_sim, true);
    fake_edge = *fb_sim_edge(fake_sim);
    fake_level = *fb_sim_level(fake_sim);
}

void fake_stop(void)
{
    fb_sim_destroy(&fake_sim);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The master as the host of control/ and upgrade/. These two know nothing of it: they reach it
 * through operations, which control_host.c and upgrade_host.c implement, and nothing else of the
 * master does. */
#pragma once

#include "control/control.h"
#include "settings/cycle.h"
#include "upgrade/upgrade.h"

struct fb_master;

/* Control socket (control_host.c) */

void control_host_init(struct fb_master *master);
/* A reload has begun: grave lines of the log become its diagnostics, and the clients that have
 * asked for it wait for its end. */
void fb_result_begin(struct fb_master *master);
/* The reload under way, if there is one, has ended: its clients get their replies. */
void fb_result_end(struct fb_master *master, bool ok);
/* The daemon ends: clients that wait for a reload or an upgrade to begin learn that there will
 * be none. */
void fb_result_none(struct fb_master *master);
/* Opens the logs again, and replies to the clients that have asked for it. */
void fb_master_reopen(struct fb_master *master);

/* Makes the endpoints of this configuration; -1 after an emerg line. */
int fb_master_prepare_endpoints(struct fb_master *master, const struct fb_core_settings *core);
/* Moves the endpoints to where the configuration that serves has them. Where that fails: -1
 * after an emerg line at the first start, else they stay where they are. */
int fb_master_publish(struct fb_master *master, bool first);

/* Upgrades (upgrade_host.c) */

/* Takes the link of a new process. */
void fb_upgrade_init(
    struct fb_master *master, struct fb_inheritance *inheritance, const struct binary *binary);
/* Begins an upgrade that was asked for, once no reload is under way; or refuses it. */
void fb_upgrade_begin(struct fb_master *master);

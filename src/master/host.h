/* SPDX-License-Identifier: BSD-2-Clause */
/* The master as the host of control/ and upgrade/. These two know nothing of it: they reach it
 * through operations, which control_host.c and upgrade_host.c implement, and nothing else of the
 * master does. */
#pragma once

#include "control/control.h"
#include "settings/cycle.h"
#include "upgrade/upgrade.h"

struct master;

/* Control socket (control_host.c) */

void control_host_init(struct master *master);
/* The daemon ends: clients that wait for a reload or an upgrade to begin learn that there will
 * be none. */
void control_host_refuse_waiting(struct master *master);
/* Opens the logs again, and replies to the clients that have asked for it. */
void control_host_reopen_logs(struct master *master);

/* Upgrades (upgrade_host.c) */

/* Takes the link of a new process. */
void upgrade_host_init(
    struct master *master, struct exec_state *inheritance, const struct binary *binary);
/* Begins an upgrade, or refuses it. No reload is under way. */
void upgrade_host_begin(struct master *master);

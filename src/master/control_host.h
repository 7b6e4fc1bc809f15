/* SPDX-License-Identifier: BSD-2-Clause */
/* The master as the host of control/, which reaches it through operations alone. */
#pragma once

struct master;

void control_host_init(struct master *master);
/* The daemon ends: clients that wait for a reload or an upgrade to begin learn that there will
 * be none. */
void control_host_refuse_waiting(struct master *master);
/* Opens the logs again, and replies to waiting clients. */
void control_host_reopen_logs(struct master *master);

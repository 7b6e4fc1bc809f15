/* SPDX-License-Identifier: BSD-2-Clause */
/* The master as the host of control/. */
#pragma once

struct master;

void control_host_init(struct master *master);
/* The daemon ends: refuses clients that wait for the beginning of a reload or an upgrade. */
void control_host_refuse_waiting(struct master *master);
/* Opens the logs again, and replies to waiting clients. */
void control_host_reopen_logs(struct master *master);

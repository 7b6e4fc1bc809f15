/* SPDX-License-Identifier: BSD-2-Clause */
/* The master as the host of pool/, control/ and upgrade/. */
#pragma once

struct master;
struct start;

/* Begins the three parts, and takes the link of a new process. Endpoints come first. */
void hosts_init(struct master *master, struct start *start);
/* Opens the logs again, and replies to waiting clients. */
void hosts_reopen_logs(struct master *master);
/* Begins an upgrade, or refuses it. No reload is under way. */
void hosts_begin_upgrade(struct master *master);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The master as the host of upgrade/. */
#pragma once

struct binary;
struct exec_state;
struct master;

/* Takes the link of a new process. */
void upgrade_host_init(
    struct master *master, struct exec_state *inheritance, const struct binary *binary);
/* Begins an upgrade, or refuses it. No reload is under way. */
void upgrade_host_begin(struct master *master);

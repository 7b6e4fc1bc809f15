/* SPDX-License-Identifier: BSD-2-Clause */
/* Worker slots, queued clients and unix paths of an ended second master. */
#pragma once

struct upgrade;

/* The other process has released sockets, or has ended: all workers rescan. */
void upgrade_alone_rescan(struct upgrade *upgrade);
/* Goes on after the new process's end. */
void upgrade_alone_go_on(struct upgrade *upgrade);

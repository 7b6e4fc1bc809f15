/* SPDX-License-Identifier: BSD-2-Clause */
/* Circles: groups of servers that pass a client around without end. */
#pragma once

struct apply;

/* Reports the servers whose clients are led in a circle for certain, once all listeners and groups
 * are known. */
void circles_check(struct apply *apply);

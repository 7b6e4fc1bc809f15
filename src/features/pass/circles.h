/* SPDX-License-Identifier: BSD-2-Clause */
/* Circles: servers that lead their clients to each other, and nowhere else. */
#pragma once

struct apply;

/* Reports the servers whose clients are led in a circle for certain, once all listeners and groups
 * are known. */
void circles_check(struct apply *apply);

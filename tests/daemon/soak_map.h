/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's death within an update of a map that all share. */
#pragma once

/* kill -9 of n workers, one after another, while clients of the resp example write: every
 * acknowledged write is there, nothing is torn, and nobody waits for a dead worker. Fails the
 * running test, or prints a line of summary. */
void soak_map_kills(unsigned n);

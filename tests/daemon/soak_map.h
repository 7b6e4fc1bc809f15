/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's death within an update of a map that all share. */
#pragma once

/* kill -9 of n workers, one after the other, while clients of the resp example write: whatever was
 * acknowledged is there, nothing is torn, and nobody waits for a dead worker. Fails the test that
 * runs it, or prints one line that sums it up. */
void soak_map_kills(unsigned n);

/* SPDX-License-Identifier: BSD-2-Clause */
/* A handshake in memory for each role and version at the start of an engine, whose keys are tried
 * on records: the installed library may have changed. */
#pragma once

#include "keeper/handshake.h"

/* Runs the test, in 4 ms, with tickets by the keys of the ring; -1 after an emerg line. */
int self_test_run(struct handshakes *handshakes, const struct ticket_ring *ring, struct log *log);

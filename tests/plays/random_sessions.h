/* SPDX-License-Identifier: BSD-2-Clause */
/* Random plays with whole workers: in every act the daemon goes through a transition (a reload, an
 * upgrade, a restart, the death of a worker, and more) while clients come, talk and go, and workers
 * are killed and stopped. No session may be lost: a connected client is accepted and gets its bytes
 * back, until it leaves or its own worker is killed. */
#pragma once

#include "plays/play.h"

struct random_sessions_options {
    uint64_t seed;
    unsigned acts;
    unsigned steps; /* in each act, mostly runs of a process */
};

struct random_sessions_result {
    unsigned long steps, connected, accepted, served;
};

/* Runs a play, and adds to the result. */
void random_sessions(
    const struct random_sessions_options *options, struct random_sessions_result *result);

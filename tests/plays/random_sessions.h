/* SPDX-License-Identifier: BSD-2-Clause */
/* Random plays with whole workers: in each act the daemon goes through a transition (a reload, an
 * upgrade, a restart, the death of a worker, and others) while clients come, talk and go, and
 * workers are killed and stopped. No session may be lost by it: a client that has connected is
 * accepted and gets its bytes back, until it leaves or its own worker is killed. */
#pragma once

#include "plays/play.h"

struct random_sessions_options {
    uint64_t seed;
    unsigned acts;
    unsigned steps; /* in each act, most of which let a process run */
};

struct random_sessions_result {
    unsigned long steps, connected, accepted, served;
};

/* Runs one play, and adds to the result. */
void random_sessions(
    const struct random_sessions_options *options, struct random_sessions_result *result);

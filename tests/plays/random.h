/* SPDX-License-Identifier: BSD-2-Clause */
/* Random plays: any signal, command, client, death, hang, failed call and change of the
 * configuration at any step, by a seed. After each step it is checked what must hold at every
 * moment, and at the end of each act, when the disturbances have stopped and time has passed, what
 * must hold of a daemon at rest. A failure names the seed and the step. */
#pragma once

#include "plays/play.h"

struct random_play_options {
    uint64_t seed;
    unsigned acts;  /* of each play */
    unsigned steps; /* steps of each act, mostly runs of a process */
    bool keepers;   /* workers have keepers */
};

/* Runs one play; returns its steps. */
unsigned long random_play(const struct random_play_options *options);

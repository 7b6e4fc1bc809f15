/* SPDX-License-Identifier: BSD-2-Clause */
/* The event mechanisms that the binary under test was built with, as its -V says, and that this
 * kernel has: tests of each are loop tests from 0 to mechanisms_count(). */
#pragma once

#include <stdbool.h>

struct mechanism;

int mechanisms_count(void);
const char *mechanisms_name(int i);

/* The mechanism of a daemon whose configuration names none: that of FORKBEARD_TEST_USE, else the
 * best. */
const struct mechanism *mechanisms_used(void);
/* `n`, or as many descriptors as a process can have that waits with it, if these are fewer. */
unsigned mechanisms_bounded(unsigned n);
/* How many descriptors a loop with it has of its own, while it waits for events and signals. */
unsigned mechanisms_descriptors(void);

/* The mechanism that the environment asks for, to be written into the block `events` of this
 * configuration; NULL: none, or the configuration names another, or refuses it. */
const char *mechanisms_asked_for(const char *text);
/* Whether a mechanism goes past the filter of system calls, so that `sandbox strict` refuses it. */
bool mechanisms_is_unfiltered(const char *name);

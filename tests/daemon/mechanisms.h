/* SPDX-License-Identifier: BSD-2-Clause */
/* The event mechanisms of the binary under test, by its -V, and of the kernel: tests of each are
 * loop tests from 0 to mechanisms_count(). */
#pragma once

#include <stdbool.h>

struct mechanism;

int mechanisms_count(void);
const char *mechanisms_name(int i);

/* The mechanism of a daemon whose configuration names none: FORKBEARD_TEST_USE's, else the best. */
const struct mechanism *mechanisms_used(void);
/* `n`, or the most descriptors of a process waiting with the mechanism, if fewer. */
unsigned mechanisms_bounded(unsigned n);
/* The number of own descriptors of a loop with the mechanism, for events and signals. */
unsigned mechanisms_descriptors(void);

/* The mechanism asked for by the environment, to be written into the block `events` of the
 * configuration; NULL: none, or the configuration names another, or refuses it. */
const char *mechanisms_asked_for(const char *text);
/* Whether a mechanism bypasses the filter of system calls, and is therefore refused by `sandbox
 * strict`. */
bool mechanisms_is_unfiltered(const char *name);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The event mechanisms that the binary under test was built with, as its -V says, and that this
 * kernel has: tests of each are loop tests from 0 to mechanisms_count(). */
#pragma once

struct mechanism;

int mechanisms_count(void);
const char *mechanisms_name(int i);

/* The mechanism of a daemon whose configuration names none: that of FORKBEARD_TEST_USE, else the
 * best. */
const struct mechanism *mechanisms_used(void);
/* How many descriptors a loop with it has of its own, while it waits for events and signals. */
unsigned mechanisms_descriptors(void);

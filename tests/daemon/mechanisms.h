/* SPDX-License-Identifier: BSD-2-Clause */
/* The event mechanisms that the binary under test was built with, as its -V says, and that this
 * kernel has: tests of each are loop tests from 0 to mechanisms_count(). */
#pragma once

int mechanisms_count(void);
const char *mechanisms_name(int i);

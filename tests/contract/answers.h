/* SPDX-License-Identifier: BSD-2-Clause */
/* The result of the next wait instead of the kernel's: for the system calls defined by
 * test_alerts.c and its neighbours. */
#pragma once

#include <stdbool.h>

/* Returns whether a result is left, with errno; each result is taken once. */
bool take_answer(int *result);

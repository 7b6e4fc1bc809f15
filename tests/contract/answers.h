/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer that the next wait has instead of the kernel's: for the system calls that
 * test_alerts.c and the files beside it define. */
#pragma once

#include <stdbool.h>

/* Returns whether there is one, with errno; each is taken once. */
bool take_answer(int *result);

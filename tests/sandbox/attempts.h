/* SPDX-License-Identifier: BSD-2-Clause */
/* Attempts of a captured process. */
#pragma once

/* Tries the attempt in the words: 0 or the errno; -1: no such attempt. Successful attempts are
 * undone, and do no harm. */
int attempt(const char *words);

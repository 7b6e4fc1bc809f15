/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that an attacker who has taken over a process might try. */
#pragma once

/* Tries what the words say: 0 or the errno; -1: there is no such attempt. What has worked is
 * undone, and none does harm when it works. */
int attempt(const char *words);

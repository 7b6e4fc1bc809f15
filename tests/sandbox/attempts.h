/* SPDX-License-Identifier: BSD-2-Clause */
/* Attempts of a process that was taken over. */
#pragma once

/* Tries what the words say: 0 or the errno; -1: there is no such attempt. What has worked is
 * undone, and none does harm when it works. */
int attempt(const char *words);

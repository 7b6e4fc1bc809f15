/* SPDX-License-Identifier: BSD-2-Clause */
/* How many threads this process has. Linux (thread_count_linux.c) shows it in /proc; other systems
 * (thread_count_none.c) have no way in common. */
#pragma once

/* Returns the number of threads; 0: not known. */
unsigned thread_count(void);

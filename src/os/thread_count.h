/* SPDX-License-Identifier: BSD-2-Clause */
/* How many threads this process has. Linux (os/linux/thread_count.c) shows it in /proc; other systems
 * (os/posix/thread_count.c) have no way in common. */
#pragma once

/* Returns the number of threads; 0: not known. */
unsigned thread_count(void);

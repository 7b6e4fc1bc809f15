/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that a child of fork() finds empty: a process that finds a pointer in it to be NULL, where
 * there cannot be such, was forked by code that is not ours, and must not go on as if it were its
 * parent. Where the kernel cannot wipe memory, it is memory as any other. */
#pragma once

#include <stddef.h>

/* Maps zeroed memory that is wiped on fork(); NULL with errno. */
void *wiped_alloc(size_t n);
void wiped_free(void *p, size_t n);
/* Marks a mapping that is there already to be wiped on fork(). */
void wiped_mark(void *p, size_t n);

/* Ends a process that has found such memory empty, without a trace in what it shares. */
_Noreturn void wiped_end(void);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory with a descriptor for other processes, of a sealed size and without a name. */
#pragma once

#include <stddef.h>

/* Makes zeroed memory; returns the descriptor, -1 with errno. Untouched pages cost nothing. */
int memory_file_make(const char *name, size_t size);
/* Copies the first n bytes, which another process may be writing; -1: there are not as many. */
int memory_file_read(int fd, void *to, size_t n);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory with a descriptor for other processes, of a sealed size and without a name. */
#pragma once

#include <stddef.h>

/* Makes zeroed memory; returns the descriptor, -1 with errno. Untouched pages cost nothing. */
int memory_file_make(const char *name, size_t size);
/* Copies the first n bytes of a file, perhaps within a write of another process; -1: the file is
 * shorter. */
int memory_file_read(int fd, void *to, size_t n);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of another process, for a search. -1 everywhere: nobody may look. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Whether the bytes are in memory that the process can read. */
int proc_memory_has(pid_t pid, const void *bytes, size_t n);
/* Whether the process has mapped a file with the text in its name. */
int proc_memory_maps(pid_t pid, const char *name);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of a segment: a descriptor without a name. Linux can seal its size, and open it once
 * more for reading alone (os/linux/segment_memory.c). POSIX can do neither (os/posix/segment_memory.c): a
 * process that has the descriptor can cut the memory short, and one that has mapped it can make its
 * mapping writable. Private to shm/. */
#pragma once

#include <stddef.h>

/* The names of the calls that create, seal and open it, for messages. */
extern const char segment_memory_create_call[], segment_memory_seal_call[];
extern const char segment_memory_open_call[];

/* Creates memory of no size, close-on-exec; -1 with errno. */
int segment_memory_create(const char *name);
/* Seals its size; -1 with errno. */
int segment_memory_seal(int fd);
/* Checks, of another process's, that it can be used as ours, and seals it if that is missing; -1
 * with errno. */
int segment_memory_check(int fd);
/* Gives whole pages of a mapping back to the system, where it can take them: they are zero then. */
void segment_memory_release(void *p, size_t n);
/* Opens it again, for a mapping that is read-only and, where the system can, stays so; -1 with
 * errno. */
int segment_memory_open_read_only(int fd);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: mappings and who inherits them, memory that has a descriptor, and copies of modules.
 *
 * Memory and descriptors are the caller's. A failure is NULL or -1 with errno. A system without
 * seals, or without marks on pages, gives plain memory instead. Never logs. */
#pragma once

#include <stddef.h>

/* Large zeroed mappings, where untouched pages cost nothing; munmap() frees them. Children of
 * fork() share os_memory_reserve_shared()'s. */
void *os_memory_reserve(size_t n);
void *os_memory_reserve_shared(size_t n);

/* Gives memory that was freed back to the system, as far as the allocator can. */
void os_memory_trim(void);

/* Zeroed memory, wiped in a child of fork() where the kernel can: a process with a NULL pointer
 * there was forked by foreign code, and must not go on as its parent. */
void *os_wiped_alloc(size_t n);
void os_wiped_free(void *p, size_t n);
/* Marks an existing mapping. */
void os_wiped_mark(void *p, size_t n);
/* Ends a process after finding wiped memory, without a trace in shared memory. */
_Noreturn void os_wiped_end(void);

/* The call of the next two functions, for messages. */
extern const char os_inherited_call[];
/* Keep whole pages from each child forked from now on, and let children have them again. On a
 * system without MADV_DONTFORK both succeed, and the child has the mapping. */
int os_inherited_never(void *base, size_t size);
int os_inherited_again(void *base, size_t size);
/* In a child: unmaps pages where the system has no MADV_DONTFORK. */
void os_inherited_drop(void *base, size_t size);

/* The names of the calls to create, seal and open a segment, for messages. */
extern const char os_segment_create_call[], os_segment_seal_call[], os_segment_open_call[];
/* Creates a descriptor of memory without a name and of size 0, close-on-exec. Without seals a
 * process that has the descriptor can cut the memory short, and make its mapping writable. */
int os_segment_create(const char *name);
/* Seals the size. */
int os_segment_seal(int fd);
/* Checks another process's memory for use as ours, and seals the size if unsealed. */
int os_segment_check(int fd);
/* Gives whole pages of a mapping back to the system, where possible: the pages are zero then. */
void os_segment_release(void *p, size_t n);
/* Opens the memory again, for a mapping that is read-only and, with seals, stays so. */
int os_segment_open_read_only(int fd);

/* The loaded copy of a module's file: sealed memory, or a private file with a name only until the
 * load. */
#define OS_COPY_PATH 1024

struct os_copy {
    int fd;                  /* -1: there is no copy */
    char path[OS_COPY_PATH]; /* for dlopen(), after os_copy_finish() */
};

/* Creates an empty copy of the file with this name, open for writing. */
int os_copy_create(struct os_copy *copy, const char *name);
/* Makes the copy unchangeable, and gives it a path no loaded object has; EMFILE: too many modules
 * are loaded. */
int os_copy_finish(struct os_copy *copy);
/* After the load: gives up what only the load has needed. Returns the descriptor that is to stay
 * open as long as the module is loaded, the caller's from now on; -1: there is none. */
int os_copy_keep(struct os_copy *copy);
/* Gives up the copy, if any. */
void os_copy_drop(struct os_copy *copy);

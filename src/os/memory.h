/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: mappings and their inheritance, memory with a descriptor, and copies of modules. Memory
 * and descriptors are the caller's. A failure is NULL or -1 with errno. A system without seals, or
 * without marks on pages, gives plain memory instead. Never logs. */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Map large zeroed memory, of which untouched pages cost nothing, for munmap(). */
void *os_memory_reserve(size_t n);
void *os_memory_reserve_shared(size_t n);
/* Gives freed memory back to the system, as far as the allocator can. */
void os_memory_trim(void);
/* Marks a mapping to be wiped in a child of fork(), where the kernel can: a process with a NULL
 * pointer there was forked by foreign code, and must not go on as its parent. */
void os_wiped_mark(void *p, size_t n);

static inline void *os_wiped_alloc(size_t n)
{
    void *p = os_memory_reserve(n);
    if (p != NULL)
        os_wiped_mark(p, n);
    return p;
}

static inline void os_wiped_free(void *p, size_t n)
{
    if (p != NULL)
        munmap(p, n);
}

/* Ends a process after finding wiped memory, without a trace in shared memory. */
static inline _Noreturn void os_wiped_end(void)
{
    _exit(EXIT_FAILURE);
}

/* For messages. */
extern const char os_inherited_call[];
/* Keep whole pages from children forked from now on, and let children have the pages again. Without
 * MADV_DONTFORK both succeed, and the child has the mapping. */
int os_inherited_never(void *base, size_t size);
int os_inherited_again(void *base, size_t size);
/* In a child: unmaps pages where the system has no MADV_DONTFORK. */
void os_inherited_drop(void *base, size_t size);

/* The names of the calls to create, seal and open a segment, for messages. */
extern const char os_segment_create_call[], os_segment_seal_call[], os_segment_open_call[];
/* Creates a close-on-exec descriptor of nameless memory of size 0. Without seals a process with the
 * descriptor can cut the memory short, and make its mapping writable. */
int os_segment_create(const char *name);
int os_segment_seal(int fd); /* the size */
/* Checks another process's memory for use as ours, and seals the size if unsealed. */
int os_segment_check(int fd);
/* Gives whole pages of a mapping back to the system, which zeroes them, where possible. */
void os_segment_release(void *p, size_t n);
/* Opens the memory again, for a mapping that is read-only, with seals for ever. */
int os_segment_open_read_only(int fd);

/* The loaded copy of a module's file: sealed memory, or a file with a name until the load. */
#define OS_COPY_PATH 1024

struct os_copy {
    int fd;                  /* -1: there is no copy */
    char path[OS_COPY_PATH]; /* for dlopen(), after os_copy_finish() */
};

/* Creates an empty copy of the named file, open for writing. */
int os_copy_create(struct os_copy *copy, const char *name);
/* Makes the copy unchangeable, and sets its path; EMFILE: too many modules are loaded. */
int os_copy_finish(struct os_copy *copy);
/* Ends the load. Returns a descriptor for the caller to keep until the unload; -1: none. */
int os_copy_keep(struct os_copy *copy);
void os_copy_drop(struct os_copy *copy);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments: memory of a fixed size, shared by the master with its workers. The master maps all of a
 * segment writable, and no child inherits the mapping. A child maps the segment anew, before code
 * of a module runs: read-only from a descriptor opened for reading, so that the mapping stays
 * read-only, except for the child's own parts; and closes the descriptor. A worker can still widen
 * a mapping of its own part by mremap(), denied by the sandbox. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct segment {
    int fd;      /* sealed; -1: closed, or private memory inherited by children */
    void *base;  /* NULL: not mapped */
    size_t size; /* whole pages */
};

/* A part of a segment, in whole pages; size 0: none. */
struct segment_part {
    size_t offset, size;
};

#define SEGMENT_CLOSED ((struct segment) { .fd = -1 })

/* Bytes of a page. */
size_t segment_page(void);
/* Rounds a size up to whole pages; 0 on an overflow. */
size_t segment_pages(size_t size);
/* Checks, with nothing made, a segment's size, and all bytes to be mapped; -1 with errno EFBIG. */
int segment_check(size_t size, size_t all);

/* Return NULL, or the failed call's name, with errno; the segment is to be closed then. */

/* Creates a zeroed segment, of a size in whole pages, and maps it. */
const char *segment_create(struct segment *segment, const char *name, size_t size);
/* Opens and maps the segment of `other` once more. */
const char *segment_open(struct segment *segment, const struct segment *other);
/* Opens and seals a segment of another process; takes ownership of fd unless the call fails. */
const char *segment_adopt(struct segment *segment, int fd);
/* A forked child: maps the segment, with the parts writable, and closes the descriptor. */
const char *segment_enter(
    struct segment *segment, const struct segment_part *parts, unsigned part_n);
/* A forked child: maps the whole segment writable, and keeps the descriptor. */
const char *segment_enter_whole(struct segment *segment);
/* Creates unsealed memory for children to inherit: of a process without workers. */
int segment_create_private(struct segment *segment, size_t size);
/* Sets whether the next forked child, in place of this process, inherits the mapping unchanged; -1
 * with errno. */
int segment_set_inherited(const struct segment *segment, bool inherited);
/* A forked child: closes the descriptor of an unused segment. */
void segment_forget(struct segment *segment);
/* Closes a segment, even a partly open segment. */
void segment_close(struct segment *segment);

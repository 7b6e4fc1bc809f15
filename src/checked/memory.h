/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for protocols: blocks, before forbidden pages. */
#pragma once

#include <bsd/sys/queue.h>
#include <forkbeard/forkbeard.h>
#include <stdbool.h>
#include <stddef.h>

struct checked;
struct checked_scope;
struct checked_slot;

/* Kinds of memory for a protocol. */
enum checked_kind {
    CHECKED_INPUT,   /* lent to `data` and `eof` */
    CHECKED_MESSAGE, /* lent to `message` */
    CHECKED_ANSWER,  /* lent to `answered` of a worker */
    CHECKED_READ,    /* lent to the `done` of fb_read_file() */
    CHECKED_KEY,     /* lent to `map_changed` */
    CHECKED_ALLOC,   /* of fb_alloc() */
    CHECKED_TEMP,    /* of fb_temp_alloc() */
    CHECKED_KINDS,
};

struct checked_block {
    TAILQ_ENTRY(checked_block) link; /* among the worker's living or ended blocks */
    LIST_ENTRY(checked_block) own;   /* allocated and alive: among the slot's */
    char *base;                      /* the pages, followed by a forbidden page */
    size_t size;                     /* bytes of the pages before the forbidden page */
    char *p;
    size_t n;
    enum checked_kind kind;
    const char *protocol;
    const char *ended; /* the end of the block's life, for the report; NULL: alive */
};

TAILQ_HEAD(checked_blocks, checked_block);

/* Bytes of a red zone, and their value. */
#define CHECKED_ZONE 32
#define CHECKED_BYTE 0xa5

/* Fills a red zone. */
void checked_zone_fill(void *zone);
/* Whether n bytes have the value of red zones. */
bool checked_is_filled(const void *p, size_t n);

/* Makes a block of a slot; NULL where there are too many, or no memory. */
struct checked_block *checked_block_make(struct checked *checked, struct checked_slot *slot,
    enum checked_kind kind, const char *protocol, size_t n);
/* Lends a copy of bytes to the scope's protocol until the callback returns; the bytes themselves
 * where there cannot be a copy. */
fb_bytes checked_block_lend(struct checked_scope *scope, enum checked_kind kind, fb_bytes bytes);
/* Ends a block, or all of a kind; from now on any access is a crash. */
void checked_block_end(struct checked *checked, struct checked_block *block, const char *when);
void checked_block_end_all(
    struct checked *checked, struct checked_slot *slot, enum checked_kind kind, const char *when);
/* Reports the slot's blocks with a damaged red zone. */
void checked_blocks_check(const struct checked_slot *slot, const char *callback);
/* Returns the block in or around the address, of any worker; NULL: none. */
const struct checked_block *checked_block_at(const void *p);
const char *checked_block_name(const struct checked_block *block);
/* Whether the call may read n bytes at p. */
bool checked_bytes(const char *call, const void *p, size_t n, const char *name);
/* Frees the blocks of a list. */
void checked_blocks_free(struct checked_blocks *blocks);
/* Reports crashes within the blocks of protocols from now on. */
void checked_report_crashes(void);

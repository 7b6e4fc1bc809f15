/* SPDX-License-Identifier: BSD-2-Clause */
/* A block of keys and values that a fuzzer has invented, read as the settings read it. An input is
 * the block's text, and behind a NUL byte what is looked up, ended by NUL bytes. */
#pragma once

#include "features/features.h"
#include "fuzz/input.h"
#include "text/variable.h"

struct block {
    struct cycle cycle;
    struct variables variables;
    struct cycle_options options;
    struct conf_report report;
    struct apply apply;
    const struct conf_directive *directive; /* NULL: the text is no block */
    const struct variable *variable;        /* NULL: it was refused */
    const uint8_t *at, *end;                /* rest of the input */
};

/* `head` is the directive before its brace, which defines $v by the setter. The setter may not read
 * files: a block with the word "include" is none. */
void block_read(struct block *block, const char *head,
    int (*set)(struct apply *apply, const struct conf_directive *directive, void *field),
    const uint8_t *data, size_t size);
void block_free(struct block *block);
/* Returns what is to be looked up next, *n bytes; NULL: there is no more. */
const char *block_next(struct block *block, size_t *n);

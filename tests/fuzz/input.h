/* SPDX-License-Identifier: BSD-2-Clause */
/* The input of a fuzzer as a sequence of decisions, and the fuzzer's assertions. */
#pragma once

#include "fuzz/fuzz.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct input {
    const uint8_t *p, *end;
};

/* Returns the next byte; behind the end all are 0. */
static inline uint8_t next_byte(struct input *in)
{
    return in->p < in->end ? *in->p++ : 0;
}

static inline void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}

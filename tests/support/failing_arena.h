/* SPDX-License-Identifier: BSD-2-Clause */
/* An arena that runs out of memory when the test says so, in place of base/arena.c: a program that
 * has this file in it links nothing of that one. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>

/* Orders for arenas from now on, and counts; all zero at first. */
extern struct failing_arena {
    unsigned asked;    /* how often memory was asked for */
    unsigned fails_at; /* the request that gets none, counted from 1; 0: every one is served */
    bool for_good;     /* none of the later ones gets any either */
    bool failed;       /* a request got none */
} failing_arena;

/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "text/regex.h"

/* Whether this build has regular expressions. */
static inline bool regex_built(void)
{
    struct arena *arena = arena_create();
    char error[REGEX_ERROR_TEXT];
    bool built = arena != NULL && regex_compile(arena, "x", error) != NULL;

    arena_destroy(&arena);
    return built;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A problem of the daemon in the status: what is wrong now, and what to do. */
#pragma once

#include "base/compiler.h"
#include "base/json.h"

#define PROBLEMS_MAX 64 /* listed; others are counted */

enum problem_level {
    PROBLEM_WARNING,  /* clients are served, perhaps fewer or more slowly */
    PROBLEM_CRITICAL, /* clients wait or are refused */
};

struct problems {
    struct json *json; /* the member "problems" is open */
    unsigned n, left_out;
};

/* Adds a problem, in one line without an end: what is wrong, and `advice`, what to do. */
void problem_add(struct problems *problems, enum problem_level level, const char *advice,
    const char *format, ...) PRINTF_FORMAT(4, 5);

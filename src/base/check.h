/* SPDX-License-Identifier: BSD-2-Clause */
/* Kind checks. A struct behind a `void *` has a member `kind`, set by its creator and cleared by
 * its destructor; code that casts the `void *` back checks the kind by CHECK_KIND(). Assertions are
 * active in every build, and never depend on memory written by other processes. */
#pragma once

#include <assert.h>
#include <stddef.h>

/* Makes a kind from four letters, which a debugger shows. */
#define KIND(a, b, c, d)                                                                           \
    ((unsigned)(a) << 24 | (unsigned)(b) << 16 | (unsigned)(c) << 8 | (unsigned)(d))

#define CHECK_KIND(object, expected) assert((object) != NULL && (object)->kind == (expected))

/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes and hints for the compiler, and two macros that C lacks. No macro here hides control
 * flow. */
#pragma once

#include <stddef.h>

#define PRINTF_FORMAT(text, args) __attribute__((format(printf, text, args)))
#define NORETURN __attribute__((noreturn))
#define NOINLINE __attribute__((noinline))
/* A function for what is rare: apart from the code that calls it, which saves no registers for it
 * and takes its branch for the unlikely one. */
#define COLD __attribute__((cold, noinline))

/* A function that is a part of each of its callers, of which one alone runs often. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define countof(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr) - (offsetof(type, member))))

/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes and hints for the compiler, and macros that C lacks; none hides control flow. */
#pragma once

#include <stddef.h>

#define PRINTF_FORMAT(text, args) __attribute__((format(printf, text, args)))
#define NORETURN __attribute__((noreturn))
#define NOINLINE __attribute__((noinline))
/* A rarely called function: callers save no registers for it, and expect not to call it. */
#define COLD __attribute__((cold, noinline))

/* A function that is a part of each caller, with a single frequent caller. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define countof(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr) - (offsetof(type, member))))

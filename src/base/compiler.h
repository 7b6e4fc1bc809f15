/* SPDX-License-Identifier: BSD-2-Clause */
/* What the compiler is told, and the two macros that C lacks. */
#pragma once

#include <stddef.h>

#define FB_PRINTF(text, args) __attribute__((format(printf, text, args)))
#define FB_NORETURN __attribute__((noreturn))

#define fb_likely(x) __builtin_expect(!!(x), 1)
#define fb_unlikely(x) __builtin_expect(!!(x), 0)

#define fb_countof(a) (sizeof(a) / sizeof((a)[0]))
#define fb_container(ptr, type, member) ((type *)(void *)((char *)(ptr) - (offsetof(type, member))))

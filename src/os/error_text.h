/* SPDX-License-Identifier: BSD-2-Clause */
/* The words for an errno, as strerror() has them, for any thread. */
#pragma once

#include <stddef.h>

/* Returns the words, in `text` (of n bytes) or in memory that stays. */
const char *error_text(int error, char *text, size_t n);

/* SPDX-License-Identifier: BSD-2-Clause */
/* UTF-8 in texts that come from outside. */
#pragma once

#include <stddef.h>

/* The bytes of the character that begins here; 0 where none does. Behind the text stands a NUL. */
size_t utf8_character(const char *text);

/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <stddef.h>

/* The bytes of the character that begins here; 0 where none does. Behind the text stands a NUL. */
size_t fb_utf8_character(const char *text);

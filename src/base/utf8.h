/* SPDX-License-Identifier: BSD-2-Clause */
/* UTF-8 in texts of a peer, a file or the environment. Never changes a text or allocates. */
#pragma once

#include <stddef.h>

/* Returns the bytes of the first character of a text with a NUL; 0: invalid UTF-8. */
size_t utf8_character(const char *text);
/* Writes the character of a code, U+FFFD for a NUL; returns the length in bytes. */
size_t utf8_encode(unsigned code, char out[4]);

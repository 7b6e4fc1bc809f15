/* SPDX-License-Identifier: BSD-2-Clause */
/* UTF-8 in texts of a peer, a file or the environment. Never changes a text or allocates. */
#pragma once

#include <stddef.h>

/* Returns the length in bytes of the text's first character; 0: invalid UTF-8. The text must end
 * with a NUL. */
size_t utf8_character(const char *text);
/* Writes the character of a code, U+FFFD for a NUL; returns the length in bytes. */
size_t utf8_encode(unsigned code, char out[4]);

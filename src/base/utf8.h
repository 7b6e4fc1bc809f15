/* SPDX-License-Identifier: BSD-2-Clause */
/* UTF-8 in texts that come from a peer, a file or the environment. Changes no text and
 * allocates nothing. */
#pragma once

#include <stddef.h>

/* Returns the length in bytes of the character that begins here, or 0 if the bytes are not valid
 * UTF-8. The text must end with a NUL. */
size_t utf8_character(const char *text);
/* Writes the character of this code, for a NUL, which would end the text, U+FFFD; returns its
 * length in bytes. */
size_t utf8_encode(unsigned code, char out[4]);

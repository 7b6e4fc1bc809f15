/* SPDX-License-Identifier: BSD-2-Clause */
/* Compression of access logs by zlib, which a build may lack. A buffer becomes a member of its own
 * of a gzip file, so that a file is readable at any time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool access_gzip_built(void);
/* Compresses n bytes, level 1 to 9; access_gzip_free() frees the result. NULL without memory. */
char *access_gzip_pack(int level, const char *bytes, size_t n, size_t *packed_n);
void access_gzip_free(char *packed);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Compresses by zlib, whose 260 KB are taken for the call alone: buffers are written seldom. */
#include "features/access_log/gzip.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* the largest, with gzip's header and trailer */
#define MEMORY_LEVEL 8        /* zlib's default */

bool access_gzip_built(void)
{
    return true;
}

char *access_gzip_pack(int level, const char *bytes, size_t n, size_t *packed_n)
{
    z_stream stream = { .next_in = (Bytef *)bytes, .avail_in = (uInt)n };
    char *packed = NULL;
    uLong most;

    assert(level >= 1 && level <= 9 && n > 0 && n <= UINT_MAX);
    if (deflateInit2(&stream, level, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return NULL;
    most = deflateBound(&stream, n);
    packed = malloc(most);
    if (packed != NULL) {
        stream.next_out = (Bytef *)packed;
        stream.avail_out = (uInt)most;
        if (deflate(&stream, Z_FINISH) == Z_STREAM_END) {
            *packed_n = stream.total_out;
        } else {
            free(packed);
            packed = NULL;
        }
    }
    deflateEnd(&stream);
    return packed;
}

void access_gzip_free(char *packed)
{
    free(packed);
}

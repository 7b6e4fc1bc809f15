/* SPDX-License-Identifier: BSD-2-Clause */
/* No compression, in a build without zlib: the directive refuses it, so that nothing is packed. */
#include "features/access_log/gzip.h"

#include <assert.h>

bool access_gzip_built(void)
{
    return false;
}

char *access_gzip_pack(int level, const char *bytes, size_t n, size_t *packed_n)
{
    assert(level == 0); /* no file has another */
    (void)bytes;
    (void)n;
    (void)packed_n;
    return NULL;
}

void access_gzip_free(char *packed)
{
    assert(packed == NULL);
    (void)packed;
}

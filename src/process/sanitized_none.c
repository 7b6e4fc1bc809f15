/* SPDX-License-Identifier: BSD-2-Clause */
/* A build as it is installed: its runtime is the C library alone. */
#include "process/sanitized.h"

#include <stddef.h>

const char *const fb_build_calls[] = { NULL };
const unsigned fb_build_prctls[] = { 0 };
const unsigned fb_build_ptraces[] = { 0 };
const bool fb_build_clones = false;

const char *fb_build_path(unsigned i, bool write)
{
    (void)i;
    (void)write;
    return NULL;
}

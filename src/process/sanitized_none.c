/* SPDX-License-Identifier: BSD-2-Clause */
/* A build without sanitizers, as installed: the runtime needs nothing, and lists are empty. */
#include "process/sanitized.h"

#include <stddef.h>

const char *const sanitized_calls[] = { NULL };
const unsigned sanitized_prctls[] = { 0 };
const unsigned sanitized_ptraces[] = { 0 };
const bool sanitized_clones = false;

const char *sanitized_path(unsigned i, bool write)
{
    (void)i;
    (void)write;
    return NULL;
}

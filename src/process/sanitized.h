/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists system calls and paths of this build's runtime, for the sandbox to allow: those of the
 * sanitizers (sanitized.c), or none (sanitized_none.c). The lists stand in process/, because the
 * start's environment has the paths of reports. */
#pragma once

#include <stdbool.h>

extern const char *const sanitized_calls[]; /* names of system calls; ends with NULL */
extern const unsigned sanitized_prctls[];   /* options of prctl(); ends with 0 */
extern const unsigned sanitized_ptraces[];  /* requests of ptrace(); ends with 0 */
extern const bool sanitized_clones; /* processes that share the worker's memory are started */

/* Returns directory number `i` that the runtime reads, or writes; NULL: no more. */
const char *sanitized_path(unsigned i, bool write);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists what the runtime of this build does in addition to the worker's own code: system calls and
 * paths of the sanitizers (sanitized.c), or nothing (sanitized_none.c). The sandbox allows these.
 * The lists stand in process/, because the places of the reports are taken from the environment at
 * the start. */
#pragma once

#include <stdbool.h>

extern const char *const sanitized_calls[]; /* names of system calls; ends with NULL */
extern const unsigned sanitized_prctls[];   /* options of prctl(); ends with 0 */
extern const unsigned sanitized_ptraces[];  /* requests of ptrace(); ends with 0 */
extern const bool sanitized_clones; /* processes that share the worker's memory are started */

/* Returns the directory number `i` that the runtime reads or, with `write`, writes; NULL: no
 * more. */
const char *sanitized_path(unsigned i, bool write);

/* SPDX-License-Identifier: BSD-2-Clause */
/* A configuration in the process that will use it: read, with a note of what its modules open
 * meanwhile, and given up with what was opened for it. What its directives mean is settings/'s
 * affair; a check of it in another process is config_check.h's. */
#pragma once

#include "process/descriptors.h"
#include "settings/cycle.h"

/* Reads the configuration, as cycle_load() does, and adds the descriptors that modules open
 * meanwhile to `opened`; NULL when there were mistakes. */
struct cycle *configuration_load(
    const struct cycle_options *options, struct log *log, int excerpts, struct descriptors *opened);
/* Closes logs and zones of a configuration that nobody else shares, and destroys it. `log`
 * writes to its logs no longer, if it did. */
void configuration_discard(struct cycle **cycle, struct log *log);

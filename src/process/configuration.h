/* SPDX-License-Identifier: BSD-2-Clause */
/* A configuration in the process that will use it: read, with a note of what its modules open
 * meanwhile, and given up with what was opened for it. What its directives mean is settings/'s
 * affair; a check of it in another process is config_check.h's. */
#pragma once

#include "base/log.h"
#include "process/descriptors.h"
#include "settings/cycle.h"

/* Reads the configuration, as cycle_load() does, and adds the descriptors that modules open
 * meanwhile to `opened`; NULL when there were mistakes. */
struct cycle *configuration_load(
    const struct cycle_options *options, struct log *log, int excerpts, struct descriptors *opened);
/* Closes logs and zones of a configuration that nobody else shares, and destroys it. `log`
 * writes to its logs no longer, if it did. */
void configuration_discard(struct cycle **cycle, struct log *log);

/* The hooks of protocols in the master, and in a single process: `conf_accepted` of the servers of
 * a configuration that has come into force, and `conf_gone` when it no longer is. Never called by
 * the check of a configuration, nor in a worker. Invariant: every call of conf_gone follows one of
 * conf_accepted with the same server, in the same process or its heir. */

/* The context of a hook's calls, while it runs. */
struct fb_master {
    struct log *log;
    const fb_protocol *protocol; /* whose hook runs */
};

/* Tells the protocols of a configuration that it is in force, and then those of the one before that
 * it no longer is. NULL: none. `in_force` is the caller's note of it, which is changed first. */
void configuration_change_hooks(
    const struct cycle **in_force, const struct cycle *next, struct log *log);

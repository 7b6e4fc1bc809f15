/* SPDX-License-Identifier: BSD-2-Clause */
/* A configuration in its process: read, with a note of descriptors opened by modules meanwhile, and
 * given up with its logs and zones. Directives are settings/'s affair; config_check.h checks a
 * configuration in another process. */
#pragma once

#include "base/log.h"
#include "process/descriptors.h"
#include "settings/cycle.h"

/* Reads the configuration, and adds descriptors opened by modules to `opened`; NULL: mistakes. */
struct cycle *configuration_load(
    const struct cycle_options *options, struct log *log, int excerpts, struct descriptors *opened);
/* Destroys a configuration, with logs and zones unless shared; `log` loses these logs. */
void configuration_discard(struct cycle **cycle, struct log *log);

/* The context of a call of a protocol's hook. The master and a single process call the hooks:
 * `conf_accepted` of all servers when a configuration comes into force, and `conf_gone` at the end
 * of its force; never a config check or a worker. Invariant: every conf_gone follows a
 * conf_accepted of the same server, in the same process or its heir. */
struct fb_master {
    struct log *log;
    const fb_protocol *protocol; /* whose hook runs */
};

/* Calls the hooks of the next configuration, then of the previous, `in_force`, changed first. */
void configuration_change_hooks(
    const struct cycle **in_force, const struct cycle *next, struct log *log);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The hooks of protocols in the master, and in a single process: `conf_accepted` of the servers of
 * a configuration that has come into force, and `conf_gone` when it no longer is.
 *
 * Never called by the check of a configuration, nor in a worker. Invariant: every call of conf_gone
 * follows one of conf_accepted with the same server, in the same process or its heir. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* The context of a hook's calls, while it runs. */
struct fb_master {
    struct log *log;
    const fb_protocol *protocol; /* whose hook runs */
};

/* Tells the protocols of a configuration that it is in force, and then those of the one before that
 * it no longer is. NULL: none. `in_force` is the caller's note of it, which is changed first. */
void conf_hooks_change(const struct cycle **in_force, const struct cycle *next, struct log *log);

/* SPDX-License-Identifier: BSD-2-Clause */
/* What a worker's process is allowed and where it runs. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* Descriptor and core limits, priority, processors, user and group, working directory, in this
 * order; -1 after an emerg line where the worker must not go on. */
int fb_process_confine(const struct fb_cycle *cycle, unsigned index, struct fb_log *log);
/* The limits alone, for a single process, which keeps its user. */
void fb_process_limit(const struct fb_cycle *cycle, struct fb_log *log);

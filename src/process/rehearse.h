/* SPDX-License-Identifier: BSD-2-Clause */
/* A configuration may bring code of other people along, which may crash or hang: a throw-away process
 * reads it first, modules and all. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* 0 when the configuration has no mistakes and its code did no harm. -1 after the lines that
 * fb_cycle_load() would have shown, or one that names the module or protocol at fault. */
int fb_cycle_rehearse(const struct fb_cycle_options *options, struct fb_log *log, int excerpts);

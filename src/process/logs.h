/* SPDX-License-Identifier: BSD-2-Clause */
/* The log files of a cycle. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* Opens every file; -1 after an emerg line, with those that were opened closed again. */
int fb_logs_open(struct fb_core_settings *core, struct fb_log *log);
/* Opens every file again by its name; one that cannot be is an alert and stays as it was. */
void fb_logs_reopen(struct fb_core_settings *core, struct fb_log *log);
void fb_logs_close(struct fb_core_settings *core);
/* Whether standard error is one of them. */
bool fb_logs_use_stderr(const struct fb_core_settings *core);

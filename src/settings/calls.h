/* SPDX-License-Identifier: BSD-2-Clause */
/* What a protocol may ask of the configuration that is being read, in its conf_done and `set`: the
 * SDK's fb_conf_ calls. */
#pragma once

#include "base/compiler.h"
#include "net/target.h"
#include "stream/shared_map.h"

#include <forkbeard/forkbeard.h>
#include <stdarg.h>

/* Reports a mistake as fb_conf_errorf() does. Returns -1. */
int fb_settings_vreport(fb_conf *conf, const char *directive, const char *format, va_list args)
    FB_PRINTF(3, 0);
int fb_settings_report(fb_conf *conf, const char *directive, const char *format, ...)
    FB_PRINTF(3, 4);
/* An address or a map that lives as long as the configuration; NULL after a report. */
const struct fb_target *fb_settings_target(fb_conf *conf, const char *directive, const char *text);
struct fb_map *fb_settings_map(fb_conf *conf, const fb_map_options *options);

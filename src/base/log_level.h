/* SPDX-License-Identifier: BSD-2-Clause */
/* Levels of log lines: nginx's names, and the numbers of syslog's severities. */
#pragma once

enum fb_level {
    FB_EMERG,
    FB_ALERT,
    FB_CRIT,
    FB_ERROR,
    FB_WARN,
    FB_NOTICE,
    FB_INFO,
    FB_DEBUG,
};

const char *fb_level_name(enum fb_level level);
/* Returns the level of the name, or -1. */
int fb_level_parse(const char *name);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Levels of log lines: nginx's names, and the numbers of syslog's severities. */
#pragma once

enum log_level {
    LEVEL_EMERG,
    LEVEL_ALERT,
    LEVEL_CRIT,
    LEVEL_ERROR,
    LEVEL_WARN,
    LEVEL_NOTICE,
    LEVEL_INFO,
    LEVEL_DEBUG,
};

const char *log_level_name(enum log_level level);
/* Returns the level of the name, or -1. */
int log_level_parse(const char *name);

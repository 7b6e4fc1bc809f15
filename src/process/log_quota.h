/* SPDX-License-Identifier: BSD-2-Clause */
/* A quota of log lines about one subject, whose faults others can cause: a burst and some a
 * second, whatever their level, and beyond the flood limit of the log. Lines that are held back
 * are counted, and the count is written a little later. */
#pragma once

#include "base/log.h"
#include "base/token_bucket.h"
#include "event/timer.h"

struct log_quota {
    struct log *log;
    struct timers *timers;
    struct timer due; /* when it is said how many lines were held back */
    struct token_bucket bucket;
    uint32_t held; /* lines that were not written, and not reported */
    char subject[48];
};

/* Log and timers outlive the quota. The subject is formatted: "worker 0 of generation 1". */
void log_quota_init(struct log_quota *quota, struct log *log, struct timers *timers,
    const char *subject, ...) PRINTF_FORMAT(4, 5);
/* Reports what was held back, and ends. */
void log_quota_done(struct log_quota *quota);
/* Writes a line, or holds it back. */
void log_quota_write(struct log_quota *quota, enum log_level level, int error, const char *format,
    ...) PRINTF_FORMAT(4, 5);

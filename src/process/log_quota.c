/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts lines by a token bucket of a rate that holds for all quotas; a timer has what was held
 * back reported. Never allocates. */
#include "process/log_quota.h"

#include "base/compiler.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define REPORT_MS 10000

/* A crash has three lines. */
static const struct token_rate rate = { .burst = 100, .per_second = 2 };

static void report_held(struct log_quota *quota)
{
    if (quota->held == 0)
        return;
    log_write(quota->log, LEVEL_ALERT, 0, "%" PRIu32 " line%s about %s %s not written", quota->held,
        quota->held == 1 ? "" : "s", quota->subject, quota->held == 1 ? "was" : "were");
    quota->held = 0;
}

static void report_due(struct loop *loop, struct timer *timer)
{
    (void)loop;
    report_held(container_of(timer, struct log_quota, due));
}

void log_quota_init(
    struct log_quota *quota, struct log *log, struct timers *timers, const char *subject, ...)
{
    va_list args;

    assert(log != NULL && timers != NULL);
    *quota = (struct log_quota) { .log = log, .timers = timers, .due = { .expired = report_due } };
    va_start(args, subject);
    vsnprintf(quota->subject, sizeof(quota->subject), subject, args);
    va_end(args);
}

void log_quota_done(struct log_quota *quota)
{
    report_held(quota);
    timers_disarm(quota->timers, &quota->due);
}

void log_quota_write(
    struct log_quota *quota, enum log_level level, int error, const char *format, ...)
{
    struct log_line line = { .level = level, .error = error };
    va_list args;

    if (level > quota->log->level)
        return;
    if (!token_bucket_take(&quota->bucket, &rate, quota->timers->clock->mono_ms)) {
        quota->held += quota->held < UINT32_MAX;
        if (!timer_is_set(&quota->due))
            timers_arm(quota->timers, &quota->due, REPORT_MS);
        return;
    }
    va_start(args, format);
    log_vput(quota->log, &line, format, args);
    va_end(args);
}

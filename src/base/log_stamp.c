/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats the time of a second in the local time zone. The only place where the log calls
 * strftime(). */
#include "base/log_stamp.h"

#include <time.h>

void log_stamp_update(struct log_stamp *stamp)
{
    time_t now = time(NULL);
    struct tm tm;

    if (now == stamp->second)
        return;
    localtime_r(&now, &tm);
    strftime(stamp->date, sizeof(stamp->date), "%Y/%m/%d %H:%M:%S", &tm);
    strftime(stamp->syslog, sizeof(stamp->syslog), "%b %e %H:%M:%S", &tm);
    stamp->second = now;
}

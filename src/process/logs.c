/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/logs.h"

#include <errno.h>
#include <unistd.h>

int fb_logs_open(struct fb_core_settings *core, struct fb_log *log)
{
    for (unsigned i = 0; i < core->log_n; i++) {
        if (core->logs[i].path == NULL || fb_log_target_open(&core->logs[i]) == 0)
            continue;
        fb_log(log, FB_EMERG, errno, "open() \"%s\" failed", core->logs[i].path);
        fb_logs_close(core);
        return -1;
    }
    return 0;
}

void fb_logs_reopen(struct fb_core_settings *core, struct fb_log *log)
{
    for (unsigned i = 0; i < core->log_n; i++)
        if (core->logs[i].path != NULL && fb_log_target_open(&core->logs[i]) == -1)
            fb_log(log, FB_ALERT, errno, "open() \"%s\" failed, the old file is written on",
                core->logs[i].path);
}

void fb_logs_close(struct fb_core_settings *core)
{
    for (unsigned i = 0; i < core->log_n; i++) {
        if (core->logs[i].path == NULL || core->logs[i].fd == -1)
            continue;
        close(core->logs[i].fd);
        core->logs[i].fd = -1;
    }
}

bool fb_logs_use_stderr(const struct fb_core_settings *core)
{
    for (unsigned i = 0; i < core->log_n; i++)
        if (core->logs[i].path == NULL)
            return true;
    return false;
}
